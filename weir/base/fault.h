// Faults of the outside world, as exceptions. Outcomes of the business are values, never these.
#pragma once

#include <stdexcept>
#include <string>

namespace weir {

// Something that was promised to be there isn't: a full disk, a stopped server, a time-out. Trying later may
// help.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A deadline passed before the work was done; whether it had an effect is unknown.
class TimedOut : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

// What was asked can't be meant: a bad setting, a damaged file, a database from the future. Trying again
// won't help.
class Unusable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "write /a/b: No space left on device", from errno.
std::string errno_text(const std::string& what);

}  // namespace weir

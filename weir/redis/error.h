// What can go wrong with Redis, sorted by what a caller can know and do about it. All are Unavailable, so that
// whoever doesn't look closer answers 503. Beside these there is weir::TimedOut: the command was sent and not
// answered within its deadline, and it is unknown whether it was done.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/fault.h"

namespace weir::redis {

// The command has certainly not been done: it was never sent. The queue is full, there was no connection
// within the deadline, or the client was stopped.
class NotDone : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

// The command was sent and the connection broke before the answer: unknown whether it was done. The client
// never sends it again by itself, unless it was marked idempotent.
class UnknownOutcome : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

enum class ErrorKind {
  wrong_type,     // WRONGTYPE: the key holds another kind of value
  no_script,      // NOSCRIPT: the server doesn't know the script (any more)
  denied,         // NOAUTH, WRONGPASS, NOPERM
  read_only,      // READONLY: a replica
  busy,           // LOADING, BUSY, TRYAGAIN, MASTERDOWN, CLUSTERDOWN: later it may work
  out_of_memory,  // OOM: the server's maxmemory is reached
  moved,          // MOVED, ASK: a cluster, and the client wasn't told so or was sent on too often
  aborted,        // EXECABORT: a command of the transaction was refused, so none was done
  other,          // ERR and whatever else the server or a script says
  unexpected,     // the answer isn't of the kind that the caller asked it for
};

// "wrong_type"; for logs.
const char* to_string(ErrorKind kind);

// By the word that an error reply starts with.
ErrorKind error_kind(std::string_view reply);

// The server answered with an error, or with another kind of value than was asked for.
class Error : public Unavailable {
 public:
  Error(ErrorKind kind, const std::string& text) : Unavailable(text), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace weir::redis

// Script: a Lua script and the SHA-1 by which a server that has seen it knows it.
#pragma once

#include <string>
#include <vector>

namespace weir::redis {

class Script {
 public:
  enum class Repeat { never, harmless };

  // `name`: for errors and metrics, letters. Repeat::harmless: running it twice is like running it once, so
  // it may be sent again when the connection breaks.
  Script(std::string name, std::string source, Repeat repeat = Repeat::never);

  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }
  const std::string& sha1() const { return sha1_; }  // 40 hexadecimal digits
  bool idempotent() const { return repeat_ == Repeat::harmless; }

 private:
  std::string name_, source_, sha1_;
  Repeat repeat_;
};

// One run of a script among many.
struct ScriptCall {
  std::vector<std::string> keys, arguments;
};

}  // namespace weir::redis

// Address: where a Redis server is, and as whom to speak to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::redis {

struct Address {
  std::string host = "127.0.0.1";  // a name or an IP address, IPv6 without brackets
  std::uint16_t port = 6379;
  std::string user{};      // empty: the default user
  std::string password{};  // empty: no AUTH
  unsigned database = 0;

  // "redis://[user:password@]host[:port][/db]", percent-encoding decoded. Throws Unusable with what is wrong
  // with it, and never with the password.
  static Address parse(std::string_view url);

  // "host:port": for logs.
  std::string endpoint() const;
};

}  // namespace weir::redis

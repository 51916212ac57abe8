// Address: where a Redis server is, and as whom to speak to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

  bool operator==(const Address&) const = default;
};

// Where a Redis is: one server, or a cluster that some of its nodes tell of.
struct Servers {
  static constexpr std::size_t kMaxSeeds = 64;

  Address address{};             // of the one
  std::vector<Address> seeds{};  // of a cluster; empty: it is none

  // "redis://.." as above, or "redis-cluster://[[user]:password@]host[:port][,host[:port]..][/0]": a cluster has the
  // database 0 alone, and all of its nodes the same user and password. Throws Unusable as above.
  static Servers parse(std::string_view url);
};

}  // namespace weir::redis

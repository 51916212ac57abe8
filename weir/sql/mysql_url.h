// MysqlAddress: where a MariaDB or MySQL server is, and whose tables are meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::sql {

struct MysqlAddress {
  std::string host;  // a name or an IP address, IPv6 without brackets; always reached by TCP
  std::uint16_t port = 3306;
  std::string user;
  std::string password{};
  std::string database;

  // "mysql://user[:password]@host[:port]/database", percent-encoding decoded. Throws Unusable with what is wrong
  // with it, and never with any part of the URL, which may hold the password.
  static MysqlAddress parse(std::string_view url);

  // "mysql://user@host:port/database": for messages; without the password.
  std::string place() const;
};

}  // namespace weir::sql

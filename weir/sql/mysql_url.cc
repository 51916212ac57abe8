#include "weir/sql/mysql_url.h"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>

#include "weir/base/fault.h"

namespace weir::sql {
namespace {

// MySQL's limit of a name.
constexpr std::size_t kMaxName = 64;

[[noreturn]] void refuse(const std::string& why) {
  throw Unusable("not the URL of a MySQL server (mysql://user:password@host:port/database): " + why);
}

std::string decoded(boost::urls::pct_string_view text, const char* what) {
  std::string plain;
  text.decode({}, boost::urls::string_token::assign_to(plain));
  // The client library takes texts that end at a NUL, and would use half of it.
  if (plain.find('\0') != std::string::npos) refuse(std::string("the ") + what + " holds a NUL");
  return plain;
}

std::uint16_t port_of(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0)
    refuse("the port isn't one of 1 .. 65535");
  return port;
}

}  // namespace

MysqlAddress MysqlAddress::parse(std::string_view url) {
  const auto parsed = boost::urls::parse_uri(boost::core::string_view(url.data(), url.size()));
  if (!parsed)
    refuse("it can't be parsed (characters like @ : / # ? in a password are written as %40 and so on)");
  const boost::urls::url_view& view = *parsed;
  if (view.scheme() != "mysql") refuse("the scheme isn't mysql");
  if (view.has_query() || view.has_fragment()) refuse("it has a query or a fragment");
  if (!view.has_authority() || view.encoded_host().empty()) refuse("it has no host");
  MysqlAddress address;
  address.host = view.host_type() == boost::urls::host_type::ipv6 ? std::string(view.host_address())
                                                                  : decoded(view.encoded_host(), "host");
  address.user = decoded(view.encoded_user(), "user");
  if (address.user.empty()) refuse("it has no user");
  address.password = decoded(view.encoded_password(), "password");
  if (view.has_port()) address.port = port_of({view.port().data(), view.port().size()});
  const std::string path = decoded(view.encoded_path(), "database");
  if (path.size() < 2) refuse("it has no database");
  address.database = path.substr(1);
  if (address.database.find('/') != std::string::npos || address.database.size() > kMaxName)
    refuse("the path isn't the name of a database");
  return address;
}

std::string MysqlAddress::place() const {
  const bool six = host.find(':') != std::string::npos;
  return "mysql://" + user + '@' + (six ? '[' + host + ']' : host) + ':' + std::to_string(port) + '/' +
         database;
}

}  // namespace weir::sql

#include "weir/redis/address.h"

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <optional>

#include "weir/base/fault.h"

namespace weir::redis {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Unusable("not the URL of a Redis server (redis://[user:password@]host:port/db): " + why);
}

template <class T>
std::optional<T> number(std::string_view digits) {
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::string decoded(boost::urls::pct_string_view text) {
  std::string plain;
  text.decode({}, boost::urls::string_token::assign_to(plain));
  return plain;
}

}  // namespace

Address Address::parse(std::string_view url) {
  const auto parsed = boost::urls::parse_uri(boost::core::string_view(url.data(), url.size()));
  if (!parsed) refuse("it can't be parsed");
  const boost::urls::url_view& view = *parsed;
  if (view.scheme() == "rediss") refuse("TLS isn't supported");
  if (view.scheme() != "redis") refuse("the scheme isn't redis");
  if (view.has_query() || view.has_fragment()) refuse("it has a query or a fragment");
  if (!view.has_authority() || view.encoded_host().empty()) refuse("it has no host");
  Address address;
  address.host =
      view.host_type() == boost::urls::host_type::ipv6 ? view.host_address() : decoded(view.encoded_host());
  if (std::ranges::any_of(address.host, [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
    refuse("the host has control characters or spaces");
  address.user = decoded(view.encoded_user());
  address.password = decoded(view.encoded_password());
  if (!address.user.empty() && address.password.empty()) refuse("a user without a password");
  if (view.has_port()) {
    const auto port = number<std::uint16_t>(std::string_view(view.port().data(), view.port().size()));
    if (!port || *port == 0) refuse("the port isn't one of 1 .. 65535");
    address.port = *port;
  }
  const std::string path = decoded(view.encoded_path());
  if (path.size() > 1) {
    const auto database = number<unsigned>(std::string_view(path).substr(1));
    if (!database) refuse("the database isn't a number");
    address.database = *database;
  }
  return address;
}

Servers Servers::parse(std::string_view url) {
  constexpr std::string_view kCluster = "redis-cluster://";
  const std::string_view authority = url.substr(0, url.find('/', url.find("://") + 3));
  if (!url.starts_with(kCluster)) {
    if (url.starts_with("redis://") && authority.substr(authority.rfind('@') + 1).find(',') != authority.npos)
      refuse("it has several hosts, which are a cluster: redis-cluster://");
    return {.address = Address::parse(url)};
  }
  url.remove_prefix(kCluster.size());
  const std::string_view place = url.substr(0, url.find('/'));
  const std::string path(url.substr(place.size()));
  const auto at = place.find('@');  // in a password it is written %40
  const std::string login(at == place.npos ? "" : place.substr(0, at + 1));
  std::string_view hosts = place.substr(login.size());
  Servers servers;
  for (bool more = true; more;) {
    const std::string_view host = hosts.substr(0, hosts.find(','));
    more = host.size() < hosts.size();
    hosts.remove_prefix(host.size() + (more ? 1 : 0));
    if (servers.seeds.size() == kMaxSeeds) refuse("it has more than " + std::to_string(kMaxSeeds) + " hosts");
    servers.seeds.push_back(Address::parse(std::string("redis://").append(login).append(host).append(path)));
  }
  if (servers.seeds.front().database != 0) refuse("a cluster has the database 0 alone");
  return servers;
}

std::string Address::endpoint() const {
  const bool six = host.find(':') != std::string::npos;
  return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace weir::redis

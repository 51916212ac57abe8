#include "weir/queue/rabbit_url.h"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>

#include "weir/base/fault.h"

namespace weir::queue {
namespace {

// The protocol's limit of a name.
constexpr std::size_t kMaxVhostBytes = 255;

[[noreturn]] void refuse(const std::string& why) {
  throw Unusable("not the URL of a RabbitMQ broker (amqp://user:password@host:port/vhost): " + why);
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

// Of "/vhost", still encoded: a slash within the name must be.
std::string vhost_of(boost::urls::pct_string_view path) {
  if (path.size() < 2) return "/";
  const boost::urls::pct_string_view name(path.substr(1));
  if (name.find('/') != boost::core::string_view::npos)
    refuse("the path isn't the name of one virtual host (a / in it is written %2F)");
  std::string vhost = decoded(name, "virtual host");
  if (vhost.size() > kMaxVhostBytes) refuse("the name of the virtual host is too long");
  return vhost;
}

}  // namespace

RabbitAddress RabbitAddress::parse(std::string_view url) {
  const auto parsed = boost::urls::parse_uri(boost::core::string_view(url.data(), url.size()));
  if (!parsed)
    refuse("it can't be parsed (characters like @ : / # ? in a password are written as %40 and so on)");
  const boost::urls::url_view& view = *parsed;
  if (view.scheme() == "amqps") refuse("TLS isn't supported");
  if (view.scheme() != "amqp") refuse("the scheme isn't amqp");
  if (view.has_query() || view.has_fragment()) refuse("it has a query or a fragment");
  if (!view.has_authority() || view.encoded_host().empty()) refuse("it has no host");
  RabbitAddress address;
  address.host = view.host_type() == boost::urls::host_type::ipv6 ? std::string(view.host_address())
                                                                  : decoded(view.encoded_host(), "host");
  if (view.has_userinfo()) {
    address.user = decoded(view.encoded_user(), "user");
    address.password = decoded(view.encoded_password(), "password");
    if (address.user.empty()) refuse("it has no user");
    if (address.password.empty()) refuse("it has a user without a password");
  }
  if (view.has_port()) address.port = port_of({view.port().data(), view.port().size()});
  address.vhost = vhost_of(view.encoded_path());
  return address;
}

std::string RabbitAddress::place() const {
  const bool six = host.find(':') != std::string::npos;
  return "amqp://" + user + '@' + (six ? '[' + host + ']' : host) + ':' + std::to_string(port) +
         ", virtual host " + vhost;
}

}  // namespace weir::queue

#include "weir/http/proxies.h"

#include <algorithm>

#include "weir/base/fault.h"
#include "weir/http/text.h"

namespace weir::http {
namespace {

namespace ip = boost::asio::ip;

// An IPv4 address that came over an IPv6 socket is still the IPv4 address.
ip::address plain_address(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  return address;
}

}  // namespace

Proxies::Proxies(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    boost::system::error_code error;
    const std::size_t slash = text.find('/');
    const ip::address address = ip::make_address(text.substr(0, slash), error);
    if (!error && address.is_v4()) {
      v4_.push_back(ip::make_network_v4(slash == std::string::npos ? text + "/32" : text, error));
    } else if (!error) {
      v6_.push_back(ip::make_network_v6(slash == std::string::npos ? text + "/128" : text, error));
    }
    if (error) throw Unusable("not an address or network of a trusted proxy: \"" + text + "\"");
  }
}

bool Proxies::trusted(const ip::address& address) const {
  const ip::address plain = plain_address(address);
  if (plain.is_v4()) {
    return std::ranges::any_of(v4_, [&](const auto& network) {
      return ip::network_v4(plain.to_v4(), network.prefix_length()).canonical() == network.canonical();
    });
  }
  return std::ranges::any_of(v6_, [&](const auto& network) {
    return ip::network_v6(plain.to_v6(), network.prefix_length()).canonical() == network.canonical();
  });
}

void Proxies::look_behind(Request& request) const {
  request.secure = same_word(request.header("X-Forwarded-Proto").value_or(""), "https");
  // Several fields are one list, in their order; it is read from its end.
  for (auto field = request.fields.rbegin(); field != request.fields.rend(); ++field) {
    if (!same_word(field->name, "x-forwarded-for")) continue;
    std::string_view rest = field->value;
    while (!rest.empty()) {
      const std::size_t comma = rest.rfind(',');
      const std::string_view item = trimmed(comma == std::string_view::npos ? rest : rest.substr(comma + 1));
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(0, comma);
      boost::system::error_code error;
      const ip::address address = ip::make_address(std::string(item), error);
      if (error) return;  // what is before an unreadable entry can't be vouched for
      request.peer = plain_address(address).to_string();
      if (!trusted(address)) return;
    }
  }
}

}  // namespace weir::http

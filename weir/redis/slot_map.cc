#include "weir/redis/slot_map.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "weir/redis/reply_reader.h"

namespace weir::redis {
namespace {

constexpr std::size_t kMaxHost = 255;

[[noreturn]] void refuse(const std::string& why) {
  throw ProtocolError("not an answer to CLUSTER SLOTS: " + why);
}

// Nothing: the cluster doesn't know it either ("?"), or it speaks TLS alone (port 0).
std::optional<Address> node_at(std::string_view host, std::int64_t port, const Address& teller) {
  if (port < 0 || port > 65'535 || host.size() > kMaxHost) refuse("a node's place can't be one");
  if (std::ranges::any_of(host, [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
    refuse("a host has control characters or spaces");
  if (port == 0 || host == "?") return std::nullopt;
  Address address = teller;
  if (!host.empty()) address.host = host;
  address.port = static_cast<std::uint16_t>(port);
  return address;
}

std::optional<Address> node_from(const Reply& reply, const Address& teller) {
  const auto& parts = reply.array();
  if (parts.size() < 2) refuse("a node without host and port");
  return node_at(parts[0].optional_text().value_or(""), parts[1].integer(), teller);
}

std::uint16_t index_of(const Address& node, std::vector<Address>& nodes) {
  const auto at = std::ranges::find_if(nodes, [&](const Address& one) { return same_node(one, node); });
  const auto index = static_cast<std::size_t>(at - nodes.begin());
  if (at == nodes.end()) {
    if (nodes.size() >= SlotMap::kMaxNodes) refuse("too many nodes");
    nodes.push_back(node);
  }
  return static_cast<std::uint16_t>(index);
}

template <class T>
std::optional<T> number(std::string_view digits) {
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

bool same_node(const Address& a, const Address& b) {
  return a.host == b.host && a.port == b.port;
}

SlotMap SlotMap::read(const Reply& reply, const Address& teller) {
  if (reply.kind() != Reply::Kind::array) refuse(reply.describe());
  SlotMap map;
  try {
    for (const Reply& range : reply.array()) {
      const auto& parts = range.array();
      if (parts.size() < 3) refuse("a range without a node");
      const auto first = parts[0].integer();
      const auto last = parts[1].integer();
      if (first < 0 || last < first || last >= static_cast<std::int64_t>(kSlots)) refuse("no range of slots");
      if (const auto primary = node_from(parts[2], teller)) {
        const auto index = index_of(*primary, map.primaries);
        std::fill(map.owner.begin() + first, map.owner.begin() + last + 1, index);
      }
      for (std::size_t i = 3; i < parts.size(); ++i)
        if (const auto replica = node_from(parts[i], teller)) index_of(*replica, map.replicas);
    }
  } catch (const Error& error) {
    refuse(error.what());  // another kind of value than belongs there
  }
  return map;
}

std::size_t SlotMap::covered() const {
  return kSlots - static_cast<std::size_t>(std::ranges::count(owner, kNobody));
}

std::optional<Redirect> Redirect::read(std::string_view error, const Address& teller) {
  Redirect redirect;
  if (error.starts_with("MOVED ")) {
    error.remove_prefix(6);
  } else if (error.starts_with("ASK ")) {
    error.remove_prefix(4);
    redirect.ask = true;
  } else {
    return std::nullopt;
  }
  const auto space = error.find(' ');
  const auto colon = error.rfind(':');  // an IPv6 address has some of its own
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space)
    return std::nullopt;
  const auto slot = number<Slot>(error.substr(0, space));
  const auto port = number<std::uint16_t>(error.substr(colon + 1));
  if (!slot || *slot >= kSlots || !port) return std::nullopt;
  try {
    const auto node = node_at(error.substr(space + 1, colon - space - 1), *port, teller);
    if (!node) return std::nullopt;
    redirect.to = *node;
  } catch (const ProtocolError&) {
    return std::nullopt;
  }
  redirect.slot = *slot;
  return redirect;
}

}  // namespace weir::redis

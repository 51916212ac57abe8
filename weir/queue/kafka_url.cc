#include "weir/queue/kafka_url.h"

#include <algorithm>
#include <charconv>

#include "weir/base/fault.h"

namespace weir::queue {
namespace {

constexpr std::string_view kScheme = "kafka://";
// The longest name that DNS allows.
constexpr std::size_t kMaxHost = 253;

[[noreturn]] void refuse(const std::string& why) {
  throw Unusable("not the URL of a Kafka cluster (kafka://host:9092,host:9092): " + why);
}

bool all_of(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != std::string_view::npos;
  });
}

std::uint16_t port_of(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0)
    refuse("a port isn't one of 1 .. 65535");
  return port;
}

KafkaAddress::Broker broker_of(std::string_view text) {
  if (text.empty()) refuse("a host is missing");
  KafkaAddress::Broker broker;
  std::string_view rest;
  if (text.front() == '[') {
    const auto end = text.find(']');
    if (end == std::string_view::npos) refuse("an IPv6 address isn't closed by ]");
    broker.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
    // What is no address is found out when it is looked up; here only that it can't be taken for something else.
    if (broker.host.find(':') == std::string::npos || !all_of(broker.host, ":.%"))
      refuse("what stands in [ ] is no IPv6 address");
  } else {
    const auto end = std::min(text.find(':'), text.size());
    broker.host = text.substr(0, end);
    rest = text.substr(end);
    if (broker.host.empty() || broker.host.size() > kMaxHost || !all_of(broker.host, ".-_"))
      refuse("a host isn't a name or an address (IPv6 is written as [::1])");
  }
  if (rest.empty()) return broker;
  if (rest.front() != ':') refuse("something stands behind an IPv6 address that is no port");
  broker.port = port_of(rest.substr(1));
  return broker;
}

}  // namespace

KafkaAddress KafkaAddress::parse(std::string_view url) {
  if (!url.starts_with(kScheme)) refuse("it doesn't begin with kafka://");
  url.remove_prefix(kScheme.size());
  if (url.find('@') != std::string_view::npos) refuse("SASL is not supported yet: no user, no password");
  if (url.ends_with('/')) url.remove_suffix(1);
  if (url.find_first_of("/?#") != std::string_view::npos) refuse("it has more than hosts and ports");
  KafkaAddress address;
  for (;;) {
    const auto end = std::min(url.find(','), url.size());
    address.brokers.push_back(broker_of(url.substr(0, end)));
    if (end == url.size()) return address;
    url.remove_prefix(end + 1);
  }
}

std::string KafkaAddress::bootstrap() const {
  std::string text;
  for (const Broker& broker : brokers) {
    if (!text.empty()) text += ',';
    const bool six = broker.host.find(':') != std::string::npos;
    text += (six ? '[' + broker.host + ']' : broker.host) + ':' + std::to_string(broker.port);
  }
  return text;
}

}  // namespace weir::queue

// KafkaAddress: where the brokers of a Kafka cluster are, at least some of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::queue {

struct KafkaAddress {
  struct Broker {
    std::string host;  // a name or an IP address, IPv6 without brackets
    std::uint16_t port = 9092;
  };
  std::vector<Broker> brokers;  // at least one: the others are asked for

  // "kafka://host[:port][,host[:port]..]". Throws Unusable with what is wrong with it, and never with any part
  // of the URL, which may hold a password that somebody has tried.
  static KafkaAddress parse(std::string_view url);

  // "host:port,[::1]:port", as Kafka's clients take it.
  std::string bootstrap() const;
};

}  // namespace weir::queue

// RabbitCatalog: which topics, partitions and groups there are, kept in the broker itself, since AMQP can't list
// what a broker has. Internal.
//
// It is a message in the queue weir.catalog. Whoever reads or changes it holds the exclusive queue
// weir.catalog.lock, which goes with its connection; a change replaces the message in a transaction of AMQP. All
// it says only grows, so that two messages, should a crash ever leave them, mean what both say together.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "weir/queue/rabbit_connection.h"

namespace weir::queue::detail {

class RabbitCatalog {
 public:
  struct Topic {
    std::uint32_t partitions = 0;
    std::set<std::string> groups;
    bool operator==(const Topic&) const = default;
  };

  const std::map<std::string, Topic, std::less<>>& topics() const { return topics_; }
  // Adds what isn't there yet, makes partitions no fewer, and keeps all groups.
  const Topic& add(const std::string& name, const Topic& topic);
  // Adds what another says.
  void merge(const RabbitCatalog& other);

  std::string encode() const;
  // Nothing for bytes that are none.
  static std::optional<RabbitCatalog> decode(std::string_view bytes);

  // Reads it, and changes it if `change` says so by returning true. `change` is called once, while nobody else
  // can read or change the catalog, and may use the connection to make what it adds. Throws Unavailable.
  static RabbitCatalog visit(RabbitConnection& connection, const std::function<bool(RabbitCatalog&)>& change);

  bool operator==(const RabbitCatalog&) const = default;

 private:
  std::map<std::string, Topic, std::less<>> topics_;
};

}  // namespace weir::queue::detail

// KafkaAdmin: what KafkaQueue asks a cluster and has it do, besides writing and reading. A detail.
//
// Thread-safe. Each call waits for a broker, for kKafkaAnswer at most where nothing else is said (less while none could
// be reached lately), and throws Unavailable when none answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/queue/kafka_client.h"

namespace weir::queue::detail {

class KafkaAdmin {
 public:
  KafkaAdmin(const std::string& bootstrap, const std::string& client_id);

  // Whether a broker could be reached lately, without asking.
  bool reached() const noexcept { return reached_; }
  // Asks whether one can be reached.
  void look();

  // How many partitions the topic has; nothing for one that isn't there.
  std::optional<std::uint32_t> partitions(const std::string& topic);
  // All but Kafka's own.
  std::vector<std::string> topics();

  struct NewTopic {
    std::uint32_t partitions, replication;
    std::vector<std::pair<std::string, std::string>> settings;
  };
  // Throws Unusable when the cluster has too few brokers for the replication, or doesn't want the name. Fine when
  // it has been made meanwhile. Returns when the brokers know the partitions, or it takes more than 10 s.
  void create(const std::string& topic, const NewTopic& as);
  void grow(const std::string& topic, std::uint32_t partitions);

  // The offsets that the group has committed, by partition; -1 where it has none.
  std::vector<std::int64_t> committed(const std::string& topic, const std::string& group,
                                      std::uint32_t count);
  // Commits for a group without members: what it would have committed itself. False when it has members.
  struct Offset {
    std::uint32_t partition;
    std::int64_t next;
  };
  bool commit(const std::string& topic, const std::string& group, std::span<const Offset> offsets);

  // The first offset of each partition that is still there, or the one that the next message will get.
  enum class Edge { first, end };
  std::vector<std::int64_t> offsets(const std::string& topic, std::uint32_t count, Edge edge);

 private:
  template <class Ask>
  KafkaEvent ask(const std::string& what, rd_kafka_admin_op_t operation, Ask ask);
  void note(rd_kafka_resp_err_t error);
  int patience() const;

  std::atomic<bool> reached_{true};
  KafkaHandle client_;
};

}  // namespace weir::queue::detail

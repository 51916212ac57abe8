// What the parts of KafkaQueue share of librdkafka: owners of its objects, its configuration, its log. A detail.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <memory>
#include <string>

namespace weir::queue::detail {

template <auto kDestroy>
struct KafkaDeleter {
  template <class T>
  void operator()(T* object) const noexcept {
    kDestroy(object);
  }
};
using KafkaHandle = std::unique_ptr<rd_kafka_t, KafkaDeleter<rd_kafka_destroy>>;
using KafkaTopic = std::unique_ptr<rd_kafka_topic_t, KafkaDeleter<rd_kafka_topic_destroy>>;
using KafkaEvents = std::unique_ptr<rd_kafka_queue_t, KafkaDeleter<rd_kafka_queue_destroy>>;
using KafkaEvent = std::unique_ptr<rd_kafka_event_t, KafkaDeleter<rd_kafka_event_destroy>>;
using KafkaError = std::unique_ptr<rd_kafka_error_t, KafkaDeleter<rd_kafka_error_destroy>>;
using KafkaPartitions =
    std::unique_ptr<rd_kafka_topic_partition_list_t, KafkaDeleter<rd_kafka_topic_partition_list_destroy>>;

// How long a broker may take to answer one request.
inline constexpr std::chrono::milliseconds kKafkaAnswer{5'000};

// The settings of a client, to be made once. Those that all clients have are in it.
class KafkaConfig {
 public:
  KafkaConfig(const std::string& bootstrap, const std::string& client_id);

  // Throws Unusable for what librdkafka doesn't know or want.
  void set(const char* name, const std::string& value);
  void set(const char* name, std::int64_t value) { set(name, std::to_string(value)); }
  // For what isn't a text.
  rd_kafka_conf_t* raw() { return conf_.get(); }

  // A client with these settings; what is set goes with it. Throws Unavailable when the system refuses its threads.
  KafkaHandle make(rd_kafka_type_t type);

 private:
  std::unique_ptr<rd_kafka_conf_t, KafkaDeleter<rd_kafka_conf_destroy>> conf_;
};

// Writes a line of librdkafka to our log, not too often. Thread-safe.
void log_kafka(int syslog_level, const char* facility, const char* text);

// Throws Unavailable: "can't WHAT: WHY".
[[noreturn]] void throw_away(const std::string& what, const std::string& why);
void throw_unless_done(const std::string& what, rd_kafka_resp_err_t error);

// Milliseconds for librdkafka, which counts with int.
inline int to_millis(std::chrono::milliseconds time) {
  return static_cast<int>(time.count() < 0 ? 0 : time.count());
}

}  // namespace weir::queue::detail

// What a record looks like as a message of RabbitMQ, for other clients too.
//
//   body                 the payload
//   message_id           the event id that the client chose, when there is one
//   timestamp            when it was appended, in seconds
//   delivery_mode        2: persistent
//   header "key"         the key (a long string)
//   header "weir"        what makes the record's identity, as bytes: 1 (the version), the producer (8 bytes,
//                        little-endian), then lane, sequence and microseconds since 1970 as LEB128 varints, the
//                        last one zigzag
//
// A message of another program has no header "weir": its producer is 0, its lane the partition, its sequence a
// number that grows with each delivery. Its key is the header "key" or, without one, the routing key. So it is
// the same event when it comes again only if it has a message_id; give it one. Without a timestamp it is as old
// as its delivery.
#pragma once

#include <amqp.h>
#include <amqp_framing.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "weir/queue/event.h"

namespace weir::queue::detail {

inline amqp_bytes_t to_bytes(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}
inline std::string_view to_view(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

// The properties of a record's message; they look at the record and at this.
class RabbitProperties {
 public:
  explicit RabbitProperties(const Record& record);
  RabbitProperties(const RabbitProperties&) = delete;
  RabbitProperties& operator=(const RabbitProperties&) = delete;
  const amqp_basic_properties_t& get() const { return properties_; }

 private:
  std::string identity_;
  std::array<amqp_table_entry_t, 2> headers_;
  amqp_basic_properties_t properties_{};
};

// The largest body that is delivered: a dead letter of the largest payload, with its reason and where it came from.
inline constexpr std::size_t kMaxRabbitBody = kMaxPayloadBytes + 4 * 1024;

// A message that was received, with its bytes. Stays where it is: its views look into it.
class RabbitMessage {
 public:
  RabbitMessage() = default;
  RabbitMessage(const RabbitMessage&) = delete;
  RabbitMessage& operator=(const RabbitMessage&) = delete;

  std::uint64_t tag = 0;  // by which its connection knows it

  // Reads all but the body. What is wrong with it, if it can't be a record: unreadable or beyond the limits.
  std::optional<std::string> begin(const amqp_basic_properties_t& properties, std::uint64_t body_size,
                                   std::string_view routing_key);
  void add(std::string_view part_of_body) { text_.append(part_of_body); }
  bool whole() const { return text_.size() == before_body_ + body_size_; }
  // Once it is whole; makes the views. `foreign` is the sequence of a message of another program, `now` its age.
  void finish(std::string_view topic, std::uint32_t partition, std::int64_t offset, std::uint64_t foreign,
              WallTime now);

  const Message& message() const { return message_; }
  // About what it takes in memory.
  std::size_t bytes() const { return text_.size(); }

 private:
  bool read_identity(std::string_view identity);

  std::string text_;  // key, event id and body
  std::size_t key_size_ = 0, before_body_ = 0, body_size_ = 0;
  bool foreign_ = true, dated_ = false;
  Message message_;
};

}  // namespace weir::queue::detail

#include "weir/queue/rabbit_wire.h"

#include <span>

#include "weir/queue/wire.h"

namespace weir::queue::detail {
namespace {

constexpr char kVersion = 1;
constexpr std::string_view kKeyHeader = "key", kIdentityHeader = "weir";
constexpr std::uint8_t kPersistent = 2;
// Beyond it a timestamp in seconds is none: microseconds are kept in 63 bits.
constexpr std::uint64_t kMaxSeconds = 9'000'000'000'000;

amqp_table_entry_t text_entry(std::string_view name, std::uint8_t kind, std::string_view text) {
  amqp_table_entry_t entry;
  entry.key = to_bytes(name);
  entry.value.kind = kind;
  entry.value.value.bytes = to_bytes(text);
  return entry;
}

// Nothing when there is none of that name, or it is no text.
std::optional<std::string_view> find_text(const amqp_basic_properties_t& properties, std::string_view name) {
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return std::nullopt;
  for (const auto& entry :
       std::span(properties.headers.entries, static_cast<std::size_t>(properties.headers.num_entries))) {
    if (to_view(entry.key) != name) continue;
    if (entry.value.kind == AMQP_FIELD_KIND_UTF8 || entry.value.kind == AMQP_FIELD_KIND_BYTES)
      return to_view(entry.value.value.bytes);
  }
  return std::nullopt;
}

}  // namespace

RabbitProperties::RabbitProperties(const Record& record) {
  identity_.push_back(kVersion);
  put_u64(identity_, record.producer);
  put_varint(identity_, record.lane);
  put_varint(identity_, record.sequence);
  put_varint(identity_, zigzag(to_micros(record.appended_at)));
  headers_ = {text_entry(kKeyHeader, AMQP_FIELD_KIND_UTF8, record.key),
              text_entry(kIdentityHeader, AMQP_FIELD_KIND_BYTES, identity_)};
  properties_._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_TIMESTAMP_FLAG;
  properties_.headers = {static_cast<int>(headers_.size()), headers_.data()};
  properties_.delivery_mode = kPersistent;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(record.appended_at).time_since_epoch();
  properties_.timestamp = static_cast<std::uint64_t>(seconds.count());
  if (record.event_id.empty()) return;
  properties_._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
  properties_.message_id = to_bytes(record.event_id);
}

std::optional<std::string> RabbitMessage::begin(const amqp_basic_properties_t& properties,
                                                std::uint64_t body_size, std::string_view routing_key) {
  const std::string_view key = find_text(properties, kKeyHeader).value_or(routing_key);
  std::string_view id;
  if ((properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0) id = to_view(properties.message_id);
  if (key.size() > kMaxKeyBytes) return "its key is too long";
  if (id.size() > kMaxEventIdBytes) return "its message id is too long";
  if (body_size > kMaxRabbitBody) return "its body is too large";
  if (const auto identity = find_text(properties, kIdentityHeader)) {
    if (!read_identity(*identity)) return "its header weir can't be read";
  } else if ((properties._flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0 && properties.timestamp < kMaxSeconds) {
    dated_ = true;
    message_.appended_at = WallTime(std::chrono::seconds(properties.timestamp));
  }
  body_size_ = static_cast<std::size_t>(body_size);
  key_size_ = key.size();
  before_body_ = key.size() + id.size();
  text_.reserve(before_body_ + body_size_);
  text_.append(key).append(id);
  return std::nullopt;
}

bool RabbitMessage::read_identity(std::string_view identity) {
  if (identity.empty() || identity.front() != kVersion) return false;
  WireReader in(identity.substr(1));
  message_.producer = in.u64();
  const std::uint64_t lane = in.varint();
  message_.lane = static_cast<std::uint32_t>(lane);
  message_.sequence = in.varint();
  message_.appended_at = from_micros(unzigzag(in.varint()));
  foreign_ = false;
  return in.good() && in.at_end() && lane == message_.lane;
}

void RabbitMessage::finish(std::string_view topic, std::uint32_t partition, std::int64_t offset,
                           std::uint64_t foreign, WallTime now) {
  const std::string_view text = text_;
  message_.topic = topic;
  message_.key = text.substr(0, key_size_);
  message_.event_id = text.substr(key_size_, before_body_ - key_size_);
  message_.payload = text.substr(before_body_);
  message_.partition = partition;
  message_.offset = offset;
  if (!foreign_) return;
  message_.lane = partition;
  message_.sequence = foreign;
  if (!dated_) message_.appended_at = now;
}

}  // namespace weir::queue::detail

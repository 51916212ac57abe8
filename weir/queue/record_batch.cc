#include "weir/queue/record_batch.h"

#include <cstring>
#include <string_view>

#include "weir/base/hash.h"

namespace weir::queue {
namespace {

constexpr std::size_t kChecksumBytes = 8;
constexpr char kVersion = 1;
// Flags of a record.
constexpr unsigned char kNewIds = 1;  // producer, lane and sequence follow
constexpr unsigned char kHasEventId = 2;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

BatchWriter::BatchWriter() : bytes_(kChecksumBytes, '\0') {
  bytes_.push_back(kVersion);
}

void BatchWriter::add(const Record& record) {
  const bool new_ids =
      record.producer != producer_ || record.lane != lane_ || record.sequence != next_sequence_;
  const unsigned flags = (new_ids ? kNewIds : 0u) | (record.event_id.empty() ? 0u : kHasEventId);
  bytes_.push_back(static_cast<char>(flags));
  if (new_ids) {
    detail::put_u64(bytes_, record.producer);
    detail::put_varint(bytes_, record.lane);
    detail::put_varint(bytes_, record.sequence);
  }
  const auto appended_at = static_cast<std::uint64_t>(to_micros(record.appended_at));
  detail::put_varint(bytes_, detail::zigzag(static_cast<std::int64_t>(appended_at - appended_at_)));
  detail::put_text(bytes_, record.key);
  detail::put_text(bytes_, record.payload);
  if (!record.event_id.empty()) detail::put_text(bytes_, record.event_id);
  producer_ = record.producer;
  lane_ = record.lane;
  next_sequence_ = record.sequence + 1;
  appended_at_ = appended_at;
  ++count_;
}

std::span<const std::byte> BatchWriter::finish() {
  const std::uint64_t checksum = hash64(std::string_view(bytes_).substr(kChecksumBytes));
  std::memcpy(bytes_.data(), &checksum, kChecksumBytes);
  return std::as_bytes(std::span(bytes_));
}

BatchReader::BatchReader(std::span<const std::byte> bytes) : in_(text_of(bytes)) {
  const std::uint64_t checksum = in_.u64();
  whole_ = in_.good() && checksum == hash64(text_of(bytes).substr(kChecksumBytes)) &&
           in_.varint() == static_cast<std::uint64_t>(kVersion);
}

bool BatchReader::next(Record& record) {
  if (!whole_ || in_.at_end()) return false;
  const std::uint64_t flags = in_.varint();
  if (flags & kNewIds) {
    producer_ = in_.u64();
    lane_ = static_cast<std::uint32_t>(in_.varint());
    next_sequence_ = in_.varint();
  }
  appended_at_ += static_cast<std::uint64_t>(detail::unzigzag(in_.varint()));
  record.key = in_.text();
  record.payload = in_.text();
  record.event_id = (flags & kHasEventId) ? in_.text() : std::string_view();
  record.producer = producer_;
  record.lane = lane_;
  record.sequence = next_sequence_++;
  record.appended_at = from_micros(static_cast<std::int64_t>(appended_at_));
  return in_.good();
}

}  // namespace weir::queue

// Record batches: how the embedded queue keeps many records as one blob, at about 25 bytes beside their
// texts'.
//
// A checksum (XXH3) in front; then each record as a flag byte, where it differs from the one before: records
// of one producer and lane with the next sequence, which nearly all are, don't repeat their ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weir/queue/event.h"
#include "weir/queue/wire.h"

namespace weir::queue {

class BatchWriter {
 public:
  BatchWriter();
  void add(const Record& record);
  std::int64_t count() const { return count_; }
  // Ends the batch; nothing may be added afterwards. The bytes live as long as the writer.
  std::span<const std::byte> finish();

 private:
  std::string bytes_;
  std::int64_t count_ = 0;
  std::uint64_t producer_ = 0, next_sequence_ = 0;
  std::uint32_t lane_ = 0;
  std::uint64_t appended_at_ = 0;  // microseconds; unsigned, because differences may overflow
};

class BatchReader {
 public:
  // The bytes must outlive the reader and the records it gives.
  explicit BatchReader(std::span<const std::byte> bytes);
  // False when the batch isn't what a BatchWriter wrote; then there are no records.
  bool whole() const { return whole_; }
  // The next record without its topic; false at the end.
  bool next(Record& record);

 private:
  detail::WireReader in_;
  bool whole_;
  std::uint64_t producer_ = 0, next_sequence_ = 0;
  std::uint32_t lane_ = 0;
  std::uint64_t appended_at_ = 0;  // microseconds; unsigned, because differences may overflow
};

}  // namespace weir::queue

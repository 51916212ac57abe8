// Journal: where an event is safe the moment a handler has said it, at the cost of a copy.
//
// A ring of segments in one preallocated, memory-mapped file. Appending copies the record and writes its
// checksum last: no system call, and what is appended survives `kill -9` (not a power cut: that is what
// `acks` are for). One reader, the sender, takes records in the order in which they were appended and
// releases them when the queue has answered. Appending to a full journal fails, and is counted in
// weir_queue_dropped_total{topic}.
//
// - All space is allocated before it is touched, since a sparse file on a full disk is a SIGBUS. Where the
//   disk is full already, the journal works with the segments that it got (maybe none) and `grow` tries
//   again.
// - The checksum (XXH3) covers the whole record with its producer, lane and sequence, and the number of the
//   segment's use, so that old records of a reused segment aren't believed.
// - Free segments are reused last in, first out: in quiet times two of them stay hot, and the resident memory
//   is theirs, whatever the size of the ring.
// - After a crash the next Journal on the directory reads what is left first, with the ids it had. A damaged
//   record is skipped, logged and counted in weir_queue_damaged_total{where="journal"}.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weir/base/hash.h"
#include "weir/queue/event.h"
#include "weir/queue/segment_file.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue {

class Journal {
 public:
  struct Options {
    std::string directory;                  // must exist; the journal is the file "journal" in it
    std::size_t size = 256 * 1024 * 1024;   // bytes, at least kMinSize
    std::uint32_t lanes = 8;                // usually the partitions of the queue behind it
    const Clock* clock = &Clock::system();  // stamps the events
  };
  static constexpr std::size_t kMinSize = 256 * 1024;

  // Throws Unusable when another process (or Journal) has the directory's journal open, or the file can't be
  // used. A full disk is no error: see `degraded`.
  explicit Journal(Options options);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Where a record ends; later appends have greater positions.
  using Position = std::uint64_t;

  // Copies the event into the journal. Nothing when it is full or the event is larger than its limits:
  // dropped and counted. Thread-safe, never blocks but for other appends' copies, about 0.1 us.
  std::optional<Position> append(const Event& event) noexcept;

  // --- for one reader, the sender --------------------------------------------------------------------------

  // Replaces `out` with the records that come next, as many as fit the limits (always one if there is one).
  // The views stay valid until `release`.
  void read(std::vector<Record>& out, std::size_t max_records, std::size_t max_bytes);
  // The end of the last record that was read.
  Position read_position() const { return read_position_; }
  // The queue has answered for all that was read: its space is free.
  void release();
  // Allocates segments that are missing, if any. True when none is.
  bool grow();
  // ---------------------------------------------------------------------------------------------------------

  // True while some of the space could not be allocated.
  bool degraded() const { return degraded_.load(std::memory_order_relaxed); }
  // The id of this start; records of earlier ones keep theirs.
  std::uint64_t producer() const { return producer_; }
  // Bytes appended (or found at the start) and not yet released, about. Thread-safe.
  std::size_t waiting_bytes() const;
  // The end of the newest record.
  Position end() const { return end_.load(std::memory_order_acquire); }

 private:
  struct Segment {
    std::uint32_t number;
    std::uint32_t generation;
    std::uint32_t written;   // where its records end; of a recovered one, at least
    std::uint32_t read;      // the reader's own: what it has taken
    std::uint32_t released;  // what the queue has
    bool recovered;          // from an earlier process: not all of it need be whole
    bool closed;             // no more is written to it
    bool finished = false;   // the reader's own: nothing is left to take
  };
  struct Topic {
    Topic(const std::string& name, std::uint32_t lanes);
    std::vector<std::uint64_t> next_sequence;  // by lane
    telemetry::Counter dropped;
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return hash64(text); }
  };

  void take_over();
  void recover(std::uint32_t number);
  std::uint32_t newest_generation_in(std::uint32_t number) const;
  Topic& topic(std::string_view name);
  bool room_for(std::size_t length);
  Position copy(const Event& event, Topic& topic, std::uint32_t lane, std::size_t length);
  void take(Segment& segment, std::uint32_t written, std::vector<Record>& out, std::size_t max_records,
            std::size_t& bytes_left);
  bool skip_damage(Segment& segment, std::uint32_t written);
  void report_damage(const Segment& segment, std::uint32_t until);

  const Options options_;
  const std::uint64_t producer_;

  mutable std::mutex mutex_;  // guards all down to the reader's own
  SegmentFile file_;
  std::unordered_map<std::string, Topic, TextHash, std::equal_to<>> topics_;
  std::vector<std::uint32_t> free_;   // numbers, a stack
  bool recovered_ = false;            // the segments that were there have been looked at
  std::uint32_t known_segments_ = 0;  // so many of the file are free or active
  // Oldest first; the last one is written to unless it is closed. The reader alone removes.
  std::deque<std::unique_ptr<Segment>> active_;
  std::uint32_t last_generation_ = 0;

  std::atomic<Position> end_{0};
  std::atomic<bool> degraded_{false};

  // The reader's own.
  struct Seen {
    Segment* segment;
    std::uint32_t written;
    bool closed;
  };
  std::vector<Seen> seen_;
  Position read_position_ = 0;
  telemetry::Counter damaged_;
};

}  // namespace weir::queue

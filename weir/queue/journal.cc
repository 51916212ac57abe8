#include "weir/queue/journal.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weir/base/random.h"
#include "weir/queue/journal_format.h"
#include "weir/queue/partition.h"
#include "weir/telemetry/log.h"

namespace weir::queue {
namespace {

using detail::kSegmentStart;
using detail::SegmentHeader;

constexpr std::size_t kMinSegment = 64 * 1024;
constexpr std::size_t kMaxSegment = 4 * 1024 * 1024;
constexpr std::size_t kUsualSegments = 64;
// The largest event fits the smallest segment, so that an empty journal takes any event.
static_assert(kSegmentStart + sizeof(detail::RecordHeader) + kMaxTopicBytes + kMaxKeyBytes +
                  kMaxEventIdBytes + kMaxPayloadBytes + 8 <=
              kMinSegment);

std::uint32_t segment_size_for(std::size_t journal_size) {
  const std::size_t even = std::clamp(journal_size / kUsualSegments, kMinSegment, kMaxSegment);
  return static_cast<std::uint32_t>(even / 4096 * 4096);
}

std::uint32_t segments_for(std::size_t journal_size) {
  return static_cast<std::uint32_t>(std::max(journal_size, Journal::kMinSize) /
                                    segment_size_for(journal_size));
}

SegmentHeader& header_of(std::byte* segment) {
  return *reinterpret_cast<SegmentHeader*>(segment);
}

Journal::Position position(std::uint32_t generation, std::uint32_t offset) {
  return (Journal::Position{generation} << 32) | offset;
}

bool within_limits(const Event& event) {
  return !event.topic.empty() && event.topic.size() <= kMaxTopicBytes && event.key.size() <= kMaxKeyBytes &&
         event.event_id.size() <= kMaxEventIdBytes && event.payload.size() <= kMaxPayloadBytes;
}

telemetry::Counter damage_counter() {
  return telemetry::counter("weir_queue_damaged_total", "Places where stored events were damaged and skipped",
                            {{"where", "journal"}});
}

}  // namespace

Journal::Topic::Topic(const std::string& name, std::uint32_t lanes)
    : next_sequence(lanes, 1),
      dropped(telemetry::counter("weir_queue_dropped_total", "Events that the journal could not take",
                                 {{"topic", name}})) {}

Journal::Journal(Options options)
    : options_(std::move(options)),
      producer_(secure_random64()),
      file_(options_.directory + "/journal", segment_size_for(options_.size), segments_for(options_.size)),
      damaged_(damage_counter()) {
  const std::lock_guard lock(mutex_);
  take_over();
}

Journal::~Journal() = default;

// --- At the start ------------------------------------------------------------------------------------------

// Makes the file's segments known: those with events that were not released go to the reader, the others are
// free.
void Journal::take_over() {
  if (file_.is_open() && !recovered_) {
    recovered_ = true;
    for (std::uint32_t number = 0; number < file_.existing(); ++number) recover(number);
    std::sort(active_.begin(), active_.end(),
              [](const auto& a, const auto& b) { return a->generation < b->generation; });
    if (file_.damaged())
      log::error("the header of the journal {} is damaged; its events are looked for", file_.path());
    if (active_.empty() && file_.outgrown()) {
      free_.clear();
      file_.restart();
    }
    known_segments_ = std::min(file_.existing(), file_.allocated());
    if (!active_.empty()) end_ = position(active_.back()->generation, file_.segment_size());
  }
  for (; known_segments_ < file_.allocated(); ++known_segments_) free_.insert(free_.begin(), known_segments_);
  const bool degraded = !file_.is_open() || file_.allocated() < file_.segments();
  if (degraded && !degraded_)
    log::warn("the disk has no room for the journal {}: {} of {} segments are there", file_.path(),
              file_.allocated(), file_.segments());
  degraded_ = degraded;
}

void Journal::recover(std::uint32_t number) {
  std::byte* base = file_.segment(number);
  const SegmentHeader header = header_of(base);
  const auto size = file_.segment_size();
  const auto in_range = [size](std::optional<std::uint32_t> at) {
    return at && *at >= kSegmentStart && *at <= size && *at % 8 == 0;
  };
  auto generation = detail::value_of(header.generation);
  const auto written = detail::value_of(header.written);
  const auto released = detail::value_of(header.released);
  const bool untouched = header.written == 0 && header.released == 0;
  const bool empty_start =
      std::all_of(base + kSegmentStart, base + kSegmentStart + sizeof(detail::RecordHeader),
                  [](std::byte byte) { return byte == std::byte{0}; });
  const bool whole = generation && in_range(written) && in_range(released);
  const bool free =
      whole ? *released == size : untouched && (header.generation == 0 || generation) && empty_start;
  if (!whole && !free) {
    damaged_.add();
    log::error("segment {} of the journal {} has a damaged header; its events are looked for", number,
               file_.path());
    if (!generation) generation = newest_generation_in(number);
  }
  if (generation) last_generation_ = std::max(last_generation_, *generation);
  if (free || *generation == 0) {
    if (number < file_.allocated()) free_.push_back(number);
    return;
  }
  const std::uint32_t begin = in_range(released) ? *released : kSegmentStart;
  active_.push_back(std::make_unique<Segment>(
      Segment{number, *generation, in_range(written) ? *written : size, begin, begin, true, true}));
}

// 0 when there is no whole record.
std::uint32_t Journal::newest_generation_in(std::uint32_t number) const {
  const std::byte* base = file_.segment(number);
  std::uint32_t newest = 0;
  Record record;
  for (std::uint32_t at = kSegmentStart; at + sizeof(detail::RecordHeader) <= file_.segment_size(); at += 8) {
    detail::RecordHeader header;
    std::memcpy(&header, base + at, sizeof header);
    if (header.generation > newest &&
        detail::read_record(base + at, file_.segment_size() - at, header.generation, record) != 0)
      newest = header.generation;
  }
  return newest;
}

bool Journal::grow() {
  const std::lock_guard lock(mutex_);
  if (!degraded_) return true;
  try {
    if (file_.open()) file_.allocate();
    take_over();
  } catch (const std::exception& error) {
    telemetry::swallowed("journal.grow", error);
  }
  return !degraded_;
}

// --- Appending ---------------------------------------------------------------------------------------------

Journal::Topic& Journal::topic(std::string_view name) {
  const auto found = topics_.find(name);
  if (found != topics_.end()) return found->second;
  std::string owned(name);
  Topic fresh(owned, options_.lanes);
  return topics_.emplace(std::move(owned), std::move(fresh)).first->second;
}

std::optional<Journal::Position> Journal::append(const Event& event) noexcept {
  try {
    const std::uint32_t lane = partition_of(event.key, options_.lanes);
    const std::size_t length =
        detail::padded(sizeof(detail::RecordHeader) + event.topic.size() + event.key.size() +
                       event.event_id.size() + event.payload.size());
    const std::lock_guard lock(mutex_);
    Topic& of = topic(event.topic);
    if (!within_limits(event) || !room_for(length)) {
      of.dropped.add();
      return std::nullopt;
    }
    return copy(event, of, lane, length);
  } catch (const std::exception& error) {
    telemetry::swallowed("journal.append", error);
    return std::nullopt;
  }
}

// Makes sure that the segment which is written to has room; false when all segments are in use.
bool Journal::room_for(std::size_t length) {
  if (!active_.empty() && !active_.back()->closed) {
    if (active_.back()->written + length <= file_.segment_size()) return true;
    if (free_.empty()) return false;
    active_.back()->closed = true;
  } else if (free_.empty()) {
    return false;
  }
  const std::uint32_t number = free_.back();
  active_.push_back(std::make_unique<Segment>(
      Segment{number, last_generation_ + 1, kSegmentStart, kSegmentStart, kSegmentStart, false, false}));
  free_.pop_back();
  ++last_generation_;
  // In this order: until the last store, a process that is killed leaves a segment that counts as free.
  SegmentHeader& header = header_of(file_.segment(number));
  detail::store(header.generation, detail::checked_word(last_generation_));
  detail::store(header.written, detail::checked_word(kSegmentStart));
  detail::store(header.released, detail::checked_word(kSegmentStart));
  return true;
}

Journal::Position Journal::copy(const Event& event, Topic& topic, std::uint32_t lane, std::size_t length) {
  Segment& segment = *active_.back();
  std::byte* base = file_.segment(segment.number);
  const detail::RecordHeader header{.checksum = 0,
                                    .generation = segment.generation,
                                    .length = static_cast<std::uint32_t>(length),
                                    .producer = producer_,
                                    .sequence = topic.next_sequence[lane],
                                    .appended_at = to_micros(options_.clock->now()),
                                    .lane = lane,
                                    .payload_bytes = static_cast<std::uint32_t>(event.payload.size()),
                                    .key_bytes = static_cast<std::uint16_t>(event.key.size()),
                                    .topic_bytes = static_cast<std::uint8_t>(event.topic.size()),
                                    .event_id_bytes = static_cast<std::uint8_t>(event.event_id.size()),
                                    .unused = 0};
  detail::write_record(base + segment.written, header, event);
  segment.written += header.length;
  detail::store(header_of(base).written, detail::checked_word(segment.written));
  ++topic.next_sequence[lane];
  const Position end = position(segment.generation, segment.written);
  end_.store(end, std::memory_order_release);
  return end;
}

// --- Reading -----------------------------------------------------------------------------------------------

void Journal::read(std::vector<Record>& out, std::size_t max_records, std::size_t max_bytes) {
  out.clear();
  seen_.clear();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& segment : active_) seen_.push_back({segment.get(), segment->written, segment->closed});
  }
  for (const auto& [segment, written, closed] : seen_) {
    if (out.size() >= max_records || max_bytes == 0) break;
    take(*segment, written, out, max_records, max_bytes);
    const bool end_of_old = segment->recovered && segment->finished;
    read_position_ = position(segment->generation, end_of_old ? file_.segment_size() : segment->read);
    if (!segment->recovered) segment->finished = closed && segment->read == written;
    if (!segment->finished) break;
  }
}

// Takes records until a limit or the segment's end. What isn't whole is skipped up to the next record that
// is.
void Journal::take(Segment& segment, std::uint32_t written, std::vector<Record>& out, std::size_t max_records,
                   std::size_t& bytes_left) {
  const std::byte* base = file_.segment(segment.number);
  const std::uint32_t limit = segment.recovered ? file_.segment_size() : written;
  while (segment.read < limit && out.size() < max_records && bytes_left > 0) {
    Record record;
    const std::uint32_t length =
        detail::read_record(base + segment.read, limit - segment.read, segment.generation, record);
    if (length != 0) {
      out.push_back(record);
      segment.read += length;
      bytes_left -= std::min<std::size_t>(bytes_left, length);
    } else if (!skip_damage(segment, written)) {
      break;
    }
  }
  if (segment.recovered && segment.read >= limit) segment.finished = true;
}

// Moves to the next whole record; false, at the segment's end, when there is none.
bool Journal::skip_damage(Segment& segment, std::uint32_t written) {
  // Beyond what was written lies at most a record whose append had not returned.
  if (segment.recovered && segment.read >= written) {
    segment.finished = true;
    return false;
  }
  const std::byte* base = file_.segment(segment.number);
  const std::uint32_t limit = segment.recovered ? file_.segment_size() : written;
  Record record;
  for (std::uint32_t at = segment.read + 8; at < limit; at += 8) {
    if (detail::read_record(base + at, limit - at, segment.generation, record) == 0) continue;
    report_damage(segment, at);
    segment.read = at;
    return true;
  }
  report_damage(segment, written);
  segment.read = written;
  segment.finished = segment.recovered;
  return false;
}

void Journal::report_damage(const Segment& segment, std::uint32_t until) {
  damaged_.add();
  log::error(
      "the journal {} is damaged in segment {}: {} bytes from {} on hold no whole event and are skipped",
      file_.path(), segment.number, until - segment.read, segment.read);
}

void Journal::release() {
  const std::lock_guard lock(mutex_);
  while (!active_.empty()) {
    Segment& segment = *active_.front();
    SegmentHeader& header = header_of(file_.segment(segment.number));
    segment.released = segment.read;
    if (!segment.finished) {
      const auto released = detail::checked_word(segment.released);
      if (header.released != released) detail::store(header.released, released);
      break;
    }
    detail::store(header.released, detail::checked_word(file_.segment_size()));
    // Its space may not be ours to write to: a file on a full disk that was copied sparsely.
    if (segment.number < known_segments_) free_.push_back(segment.number);
    active_.pop_front();
  }
}

std::size_t Journal::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& segment : active_)
    bytes += segment->written - std::min(segment->written, segment->released);
  return bytes;
}

}  // namespace weir::queue

#include "weir/idempotency/inbox.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "weir/idempotency/interval_set.h"

namespace weir::idempotency {
namespace {

using queue::Message;

// `first` is the lowest sequence that a row answers for: up to the next row's, the last row for all above.
// Rows of one lane are deleted from the lowest, so that a row never answers for what another has forgotten.
constexpr std::array kMigrations{sql::Migration{1, "inbox", R"(
CREATE TABLE inbox (
  consumer TEXT NOT NULL,
  topic TEXT NOT NULL,
  producer INTEGER NOT NULL,
  lane INTEGER NOT NULL,
  first INTEGER NOT NULL,
  seen BLOB NOT NULL,
  newest INTEGER NOT NULL,
  PRIMARY KEY (consumer, topic, producer, lane, first)
) WITHOUT ROWID;
CREATE INDEX inbox_newest ON inbox (consumer, newest);
CREATE TABLE inbox_client (
  consumer TEXT NOT NULL,
  topic TEXT NOT NULL,
  key TEXT NOT NULL,
  event_id TEXT NOT NULL,
  appended_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, topic, key, event_id)
) WITHOUT ROWID;
CREATE INDEX inbox_client_appended ON inbox_client (consumer, appended_at);
)",
                                                R"(
CREATE TABLE inbox (
  consumer VARBINARY(255) NOT NULL,
  topic VARBINARY(255) NOT NULL,
  producer BIGINT NOT NULL,
  lane BIGINT NOT NULL,
  first BIGINT NOT NULL,
  seen BLOB NOT NULL,
  newest BIGINT NOT NULL,
  PRIMARY KEY (consumer, topic, producer, lane, first)
);
CREATE INDEX inbox_newest ON inbox (consumer, newest);
CREATE TABLE inbox_client (
  consumer VARBINARY(255) NOT NULL,
  topic VARBINARY(255) NOT NULL,
  "key" VARBINARY(1024) NOT NULL,
  event_id VARBINARY(128) NOT NULL,
  appended_at BIGINT NOT NULL,
  PRIMARY KEY (consumer, topic, "key", event_id)
);
CREATE INDEX inbox_client_appended ON inbox_client (consumer, appended_at);
)"}};

// On MySQL a lane is locked by its lowest row, which this makes if it is missing: one that has seen nothing, and so
// answers for nothing. Reading rows that aren't there would lock the gap where others make theirs.
const sql::Query kLock{"consumer", "inbox_lock",
                       "INSERT INTO inbox (consumer, topic, producer, lane, first, seen, newest) "
                       "VALUES (?, ?, ?, ?, 0, ?, 0) ON DUPLICATE KEY UPDATE newest = newest"};
#define WEIR_LOAD                                                                                         \
  "SELECT first, seen, newest FROM inbox WHERE consumer = ? AND topic = ? AND producer = ? AND lane = ? " \
  "AND first <= ? AND first >= coalesce((SELECT max(first) FROM inbox WHERE consumer = ? AND topic = ? "  \
  "AND producer = ? AND lane = ? AND first <= ?), 0) ORDER BY first"
const sql::Query kLoad{"consumer", "inbox_load", WEIR_LOAD, WEIR_LOAD " FOR UPDATE"};
#undef WEIR_LOAD
#define WEIR_SAVE                                                             \
  "INSERT INTO inbox (consumer, topic, producer, lane, first, seen, newest) " \
  "VALUES (?, ?, ?, ?, ?, ?, ?) "
const sql::Query kSave{"consumer", "inbox_save",
                       WEIR_SAVE
                       "ON CONFLICT (consumer, topic, producer, lane, first) "
                       "DO UPDATE SET seen = excluded.seen, newest = excluded.newest",
                       WEIR_SAVE "ON DUPLICATE KEY UPDATE seen = VALUES(seen), newest = VALUES(newest)"};
#undef WEIR_SAVE
const sql::Query kHasClientId{"consumer", "inbox_has_client_id",
                              "SELECT 1 FROM inbox_client WHERE consumer = ? AND topic = ? AND \"key\" = ? "
                              "AND event_id = ?"};
const sql::Query kAddClientId{"consumer", "inbox_add_client_id",
                              "INSERT INTO inbox_client (consumer, topic, key, event_id, appended_at) "
                              "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                              // The columns hold all that a queue takes: nothing is cut.
                              "INSERT IGNORE INTO inbox_client (consumer, topic, \"key\", event_id, "
                              "appended_at) VALUES (?, ?, ?, ?, ?)"};
const sql::Query kPrune{
    "consumer", "inbox_prune",
    "DELETE FROM inbox WHERE (consumer, topic, producer, lane, first) IN ("
    "SELECT a.consumer, a.topic, a.producer, a.lane, a.first FROM inbox a WHERE a.consumer = ? AND a.newest "
    "< ? "
    "AND NOT EXISTS (SELECT 1 FROM inbox b WHERE b.consumer = a.consumer AND b.topic = a.topic "
    "AND b.producer = a.producer AND b.lane = a.lane AND b.newest >= ?) "
    "ORDER BY a.topic, a.producer, a.lane, a.first LIMIT ?)"};
const sql::Query kPruneClientIds{"consumer", "inbox_prune_client_ids",
                                 "DELETE FROM inbox_client WHERE (consumer, topic, key, event_id) IN ("
                                 "SELECT consumer, topic, key, event_id FROM inbox_client WHERE consumer = ? "
                                 "AND appended_at < ? LIMIT ?)",
                                 "DELETE FROM inbox_client WHERE consumer = ? AND appended_at < ? LIMIT ?"};
// What kPrune does, for MySQL, which deletes from no table that it selects from.
const sql::Query kOldLanes{
    "consumer", "inbox_old_lanes",
    "SELECT DISTINCT a.topic, a.producer, a.lane FROM inbox a WHERE a.consumer = ? AND a.newest < ? "
    "AND NOT EXISTS (SELECT 1 FROM inbox b WHERE b.consumer = a.consumer AND b.topic = a.topic "
    "AND b.producer = a.producer AND b.lane = a.lane AND b.newest >= ?) "
    "ORDER BY a.topic, a.producer, a.lane LIMIT ?"};
const sql::Query kNewestOfLane{"consumer", "inbox_newest_of_lane",
                               "SELECT max(newest) FROM inbox WHERE consumer = ? AND topic = ? "
                               "AND producer = ? AND lane = ? FOR UPDATE"};
const sql::Query kPruneLane{
    "consumer", "inbox_prune",
    "DELETE FROM inbox WHERE consumer = ? AND topic = ? AND producer = ? AND lane = ? "
    "ORDER BY first LIMIT ?"};

// What a row of the inbox holds.
struct Part {
  std::uint64_t first;
  IntervalSet seen;
  std::int64_t newest;
  bool changed = false;
};

// What the inbox knows of one producer's lane, as far as a batch needs it.
struct Lane {
  std::uint64_t lowest = ~std::uint64_t{0}, highest = 0;  // of the batch's sequences
  std::vector<Part> parts;                                // by first
};
using LaneId = std::tuple<std::string_view, std::uint64_t, std::uint32_t>;  // topic, producer, lane

// One batch on its way through the inbox.
class Admitting {
 public:
  Admitting(sql::Session& session, const Inbox::Options& options, std::span<const Message> messages)
      : session_(session),
        consumer_(options.consumer),
        oldest_(options.clock->now() - options.retention),
        messages_(messages),
        verdicts_(messages.size(), Verdict::duplicate) {}

  Admission run() {
    sort_out();
    for (auto& [id, lane] : lanes_) load(id, lane);
    for (std::size_t i = 0; i < messages_.size(); ++i)
      verdicts_[i] = lane_of_[i] == nullptr ? judge_foreign(messages_[i]) : judge(messages_[i], *lane_of_[i]);
    judge_client_ids();
    for (auto& [id, lane] : lanes_) save(id, lane);
    return result();
  }

 private:
  enum class Verdict : std::uint8_t { duplicate, fresh, too_old };

  void sort_out() {
    lane_of_.reserve(messages_.size());
    LaneId last;
    Lane* lane = nullptr;
    for (const Message& message : messages_) {
      if (message.producer == queue::kNoProducer) {
        lane_of_.push_back(nullptr);
        continue;
      }
      const LaneId id{message.topic, message.producer, message.lane};
      if (lane == nullptr || id != last) lane = &lanes_[id];
      last = id;
      lane->lowest = std::min(lane->lowest, message.sequence);
      lane->highest = std::max(lane->highest, message.sequence);
      lane_of_.push_back(lane);
    }
  }

  void load(const LaneId& id, Lane& lane) {
    const auto& [topic, producer, number] = id;
    const auto signed_producer = static_cast<std::int64_t>(producer);
    if (session_.dialect() == sql::Dialect::mysql)
      session_.execute(kLock, consumer_, topic, signed_producer, number, IntervalSet().encode());
    session_.each(
        kLoad,
        [&](const sql::Row& row) {
          auto seen = IntervalSet::decode(row.get<std::span<const std::byte>>(1));
          if (!seen) throw sql::Error(sql::ErrorKind::corrupt, "a row of the inbox is damaged");
          lane.parts.push_back({row.get<std::uint64_t>(0), std::move(*seen), row.get<std::int64_t>(2)});
        },
        consumer_, topic, signed_producer, number, lane.highest, consumer_, topic, signed_producer, number,
        lane.lowest);
  }

  // The row that answers for the sequence, if there is one.
  static Part* part_for(Lane& lane, std::uint64_t sequence) {
    auto above = std::upper_bound(lane.parts.begin(), lane.parts.end(), sequence,
                                  [](std::uint64_t number, const Part& part) { return number < part.first; });
    return above == lane.parts.begin() ? nullptr : &*std::prev(above);
  }

  Verdict judge(const Message& message, Lane& lane) {
    const bool old = message.appended_at < oldest_;
    Part* part = part_for(lane, message.sequence);
    if (part != nullptr && part->seen.contains(message.sequence)) return Verdict::duplicate;
    if (!message.event_id.empty()) {
      // Judged later, in the order of the keys; an old one without a row must leave no mark here.
      if (old && !has_client_id(message)) return Verdict::too_old;
    } else if (old && (part == nullptr || part->seen.intervals().empty())) {
      return Verdict::too_old;
    }
    if (part == nullptr) part = &*lane.parts.insert(lane.parts.begin(), Part{0, {}, 0});
    part->seen.insert(message.sequence);
    part->newest = std::max(part->newest, to_micros(message.appended_at));
    part->changed = true;
    return Verdict::fresh;
  }

  // Of another client: only its own id tells it from others, and is judged later.
  Verdict judge_foreign(const Message& message) {
    const bool known = !message.event_id.empty() && message.appended_at < oldest_ && has_client_id(message);
    return message.appended_at < oldest_ && !known ? Verdict::too_old : Verdict::fresh;
  }

  bool has_client_id(const Message& message) {
    return session_
        .one(kHasClientId, sql::first<int>, consumer_, message.topic, message.key, message.event_id)
        .has_value();
  }

  // Of those that are fresh by sequence, the ones whose client's id is known are duplicates still.
  void judge_client_ids() {
    std::vector<std::size_t> with_id;
    for (std::size_t i = 0; i < messages_.size(); ++i)
      if (verdicts_[i] == Verdict::fresh && !messages_[i].event_id.empty()) with_id.push_back(i);
    const auto key = [this](std::size_t i) {
      return std::tuple(messages_[i].topic, messages_[i].key, messages_[i].event_id, i);
    };
    std::sort(with_id.begin(), with_id.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    for (const std::size_t i : with_id) {
      const Message& message = messages_[i];
      const auto added = session_.execute(kAddClientId, consumer_, message.topic, message.key,
                                          message.event_id, message.appended_at);
      if (added.rows == 0) verdicts_[i] = Verdict::duplicate;
    }
  }

  void save(const LaneId& id, Lane& lane) {
    for (Part& part : lane.parts) {
      if (!part.changed) continue;
      while (part.seen.intervals().size() > Inbox::kMaxIntervals) {
        IntervalSet upper = part.seen.split(Inbox::kMaxIntervals / 2);
        save_part(id, part);
        part.first = upper.intervals().front().first;
        part.seen = std::move(upper);
      }
      save_part(id, part);
    }
  }

  void save_part(const LaneId& id, const Part& part) {
    const auto& [topic, producer, number] = id;
    session_.execute(kSave, consumer_, topic, static_cast<std::int64_t>(producer), number, part.first,
                     part.seen.encode(), part.newest);
  }

  Admission result() const {
    Admission admission;
    admission.fresh.reserve(messages_.size());
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (verdicts_[i] == Verdict::fresh) admission.fresh.push_back(i);
      if (verdicts_[i] == Verdict::too_old) admission.too_old.push_back(i);
      if (verdicts_[i] == Verdict::duplicate) ++admission.duplicates;
    }
    return admission;
  }

  sql::Session& session_;
  const std::string& consumer_;
  const WallTime oldest_;
  const std::span<const Message> messages_;
  std::vector<Verdict> verdicts_;
  std::map<LaneId, Lane> lanes_;
  std::vector<Lane*> lane_of_;  // by message; null for one of another client
};

struct OldLane {
  sql::Blob topic;
  std::int64_t producer, lane;
};

// Nothing on SQLite, where kPrune finds them itself.
std::optional<std::vector<OldLane>> old_lanes(sql::Session& session, const std::string& consumer,
                                              WallTime oldest, int limit) {
  if (session.dialect() == sql::Dialect::sqlite) return std::nullopt;
  const auto read = [](const sql::Row& row) {
    return OldLane{row.get<sql::Blob>(0), row.get<std::int64_t>(1), row.get<std::int64_t>(2)};
  };
  return session.all(kOldLanes, read, consumer, oldest, oldest, limit);
}

// Deletes the lanes' rows, from the lowest, at most Inbox::kPruneRows; how many. A lane in which something was
// seen meanwhile stays as it is.
std::int64_t prune_lanes(sql::Session& session, const std::string& consumer, WallTime oldest,
                         std::span<const OldLane> lanes) {
  std::int64_t deleted = 0;
  for (const auto& [topic, producer, lane] : lanes) {
    if (deleted == Inbox::kPruneRows) break;
    const auto newest =
        session.one(kNewestOfLane, sql::first<std::optional<WallTime>>, consumer, topic, producer, lane);
    if (!newest || !*newest || **newest >= oldest) continue;
    deleted += session.execute(kPruneLane, consumer, topic, producer, lane, Inbox::kPruneRows - deleted).rows;
  }
  return deleted;
}

}  // namespace

std::span<const sql::Migration> migrations() {
  return kMigrations;
}

Inbox::Inbox(Options options)
    : options_(std::move(options)),
      duplicates_(telemetry::counter("weir_duplicates_dropped_total",
                                     "Messages that were delivered again and did nothing",
                                     {{"consumer", options_.consumer}})) {}

Admission Inbox::admit(sql::Session& session, std::span<const Message> messages) const {
  return Admitting(session, options_, messages).run();
}

void Inbox::refuse_too_old(const Admission& admission) {
  if (!admission.too_old.empty())
    throw queue::Park(admission.too_old, "too old to vouch for: it may have been counted and forgotten");
}

void Inbox::count_duplicates(std::size_t count) const {
  if (count > 0) duplicates_.add(static_cast<double>(count));
}

bool Inbox::prune_step(sql::Database& database) const {
  const WallTime oldest = options_.clock->now() - options_.retention - kGrace;
  const auto lanes = database.read_now(
      [&](sql::Session& session) { return old_lanes(session, options_.consumer, oldest, kPruneRows); });
  return database.write_now([&](sql::Session& session) {
    const auto rows = lanes ? prune_lanes(session, options_.consumer, oldest, *lanes)
                            : session.execute(kPrune, options_.consumer, oldest, oldest, kPruneRows).rows;
    const auto ids = session.execute(kPruneClientIds, options_.consumer, oldest, kPruneRows).rows;
    return rows == kPruneRows || ids == kPruneRows;
  });
}

}  // namespace weir::idempotency

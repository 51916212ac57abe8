// Inbox: remembers which events a consumer has already had, in the same transaction as their effect, so that
// an event that is delivered twice counts once.
//
// For ids made by servers there is a row for each (consumer, topic, producer, lane) with the exact set of
// sequences seen, as intervals: late is never taken for repeated, and a parked event stays a gap until it is
// retried. While events arrive without gaps a row is a few bytes. A row that grows too long is split in two.
// For ids chosen by clients there is, in addition, a row for each (consumer, topic, key, event_id). A message of
// another client (queue::kNoProducer) has only that; without an event_id it counts whenever it is delivered.
//
// Forgetting: a producer's and lane's rows go when their newest event is older than the retention plus an
// hour. An event older than the retention without a row is "too old to vouch for": it may have been counted
// and forgotten, so it is parked and never counted. The retention must exceed the queue's.
//
// Cost: one SELECT and one UPSERT for each (producer, lane) in a batch, about 10 ns an event.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/queue/batch_consumer.h"
#include "weir/queue/event.h"
#include "weir/sql/database.h"
#include "weir/telemetry/metrics.h"

namespace weir::idempotency {

// The inbox's tables in the store's database: store.migrate("idempotency", idempotency::migrations()).
std::span<const sql::Migration> migrations();

// What a batch holds, as indices into it, ascending.
struct Admission {
  std::vector<std::size_t> fresh;    // seen for the first time: act on these
  std::vector<std::size_t> too_old;  // can't be vouched for: park these, don't act
  std::size_t duplicates = 0;        // the rest
};

class Inbox {
 public:
  struct Options {
    std::string consumer;  // the group
    std::chrono::seconds retention = std::chrono::hours(7 * 24);
    const Clock* clock = &Clock::system();
  };
  // Rows that one step of pruning deletes at most of each kind.
  static constexpr int kPruneRows = 500;
  // Intervals that one row holds at most before it is split.
  static constexpr std::size_t kMaxIntervals = 1'000;
  // How long rows outlive the retention, so that a clock that differs a little does no harm.
  static constexpr std::chrono::hours kGrace{1};

  explicit Inbox(Options options);

  // Looks the messages up and marks them as seen, in the session's transaction; it must be a writing one.
  // Rows are read and written in key order.
  Admission admit(sql::Session& session, std::span<const queue::Message> messages) const;

  // The whole of it: in one transaction, admits the batch and runs effect(Session&, fresh messages), then
  // counts the duplicates in weir_duplicates_dropped_total{consumer}. The effect isn't called when nothing is
  // fresh. Throws queue::Park for messages that are too old, before any effect. Returns what the effect
  // returns (default-made if it wasn't called). Blocks: for consumers. As all that Database::write runs, the effect
  // may be called again on MySQL, after what it did was undone.
  template <class Effect>
  auto process(sql::Database& database, std::span<const queue::Message> messages, Effect effect) const {
    using Result = std::invoke_result_t<Effect&, sql::Session&, std::span<const queue::Message>>;
    using Kept = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;
    struct Done {
      Kept result{};
      std::size_t duplicates = 0;
    };
    Done done = database.write_now([&](sql::Session& session) {
      Done inside;
      const Admission admission = admit(session, messages);
      refuse_too_old(admission);
      inside.duplicates = admission.duplicates;
      if (admission.fresh.empty()) return inside;
      std::vector<queue::Message> some;
      std::span<const queue::Message> fresh = messages;
      if (admission.fresh.size() < messages.size()) {
        some.reserve(admission.fresh.size());
        for (const std::size_t index : admission.fresh) some.push_back(messages[index]);
        fresh = some;
      }
      if constexpr (std::is_void_v<Result>)
        effect(session, fresh);
      else
        inside.result = effect(session, fresh);
      return inside;
    });
    count_duplicates(done.duplicates);
    if constexpr (!std::is_void_v<Result>) return std::move(done.result);
  }

  // Deletes at most kPruneRows rows of each kind that are past the retention, of this consumer; true when
  // there may be more.
  bool prune_step(sql::Database& database) const;

  const std::string& consumer() const { return options_.consumer; }

 private:
  static void refuse_too_old(const Admission& admission);
  void count_duplicates(std::size_t count) const;

  Options options_;
  mutable telemetry::Counter duplicates_;
};

}  // namespace weir::idempotency

// IdFilter: who asks for an id that nobody ever created is answered without the store.
//
// A Bloom filter of all ids that exists beside a mark. The filter is complete up to the mark; the mark moves
// only by reading ids back from the store, never by one's own insert, so that other nodes' rows are in. Ids
// of the gaps that it passes are put in as if their rows existed: they may be uncommitted. An id above the
// mark waits for a look at the store's highest id that began after it came; one look is in flight at a time
// and answers all who wait, looks start at least `look_interval` apart, and an id that is further up than
// could have been created since the last look needs none.
//
// Promises: no row is ever denied, whoever created it; until the filter is filled (in the background, after
// `start`) nothing is. A million invented ids cost a few cheap look-ups. About 1.5 bytes an id.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/id.h"
#include "weir/cache/membership.h"

namespace weir::cache {

class IdFilter {
 public:
  // What the filter asks the store; all may throw, which is a failure of the look (or of a try to fill),
  // never an answer.
  struct Source {
    // The first `limit` ids above `after`, ascending: every row ever created counts, drafts too.
    std::function<boost::asio::awaitable<std::vector<Id>>(Id after, std::size_t limit)> read_ids;
    // The highest id, 0 when there is none. Cheap: an end of the primary key's index.
    std::function<boost::asio::awaitable<Id>()> highest_id;
    // Returns when every transaction that was open at the call has ended. Empty for a store whose rows become
    // visible in the order of their ids (SQLite: one writer).
    std::function<boost::asio::awaitable<void>()> older_transactions_ended{};
  };
  struct Options {
    std::string name;                    // of what, for logs and metrics
    std::uint64_t expected = 1'000'000;  // more are taken, too: the filter grows
    double false_positive_rate = 0.01;
    std::size_t page = 10'000;                      // ids read at once
    Id open_gap = 10'000;                           // ids below the highest that may still be uncommitted
    Id created_at_most = 10'000;                    // rows created ...
    std::chrono::milliseconds created_within{100};  // ... in this time, by all nodes together
    std::chrono::milliseconds look_interval{5};
    std::chrono::milliseconds look_timeout{2'000};
    const Clock* clock = &Clock::system();
  };

  IdFilter(Options options, Source source, boost::asio::any_io_executor executor);
  ~IdFilter();  // stops
  IdFilter(const IdFilter&) = delete;
  IdFilter& operator=(const IdFilter&) = delete;

  // Begins to fill, in the background; a failure is logged, counted and tried again with backoff. Once.
  void start();
  // Ends the background work and every wait with Unavailable.
  void stop();

  // What is known of the id; for ReadThrough's `membership`. Throws when the look fails: then nobody knows.
  boost::asio::awaitable<Membership> membership(Id id);
  // The same as far as it needs no look, else nothing; for `membership_at_once`.
  std::optional<Membership> known(Id id) const;
  // A row with this id was created here: no need to look for it. Never moves the mark.
  void created(Id id);

  bool filled() const;
  Id mark() const;
  std::uint64_t bytes() const;
  std::uint64_t looks() const;  // looks at the highest id, so far

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace weir::cache

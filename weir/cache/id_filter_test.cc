#include "weir/cache/id_filter.h"

#include <gtest/gtest.h>

#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <set>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/cache/gate.h"
#include "weir/cache/test_loop.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// Rows of a store that commits in any order: what is inserted here is what others can see.
struct Rows {
  std::mutex mutex;
  std::set<Id> ids;
  std::atomic<int> looks{0}, reads{0};
  std::atomic<bool> failing{false}, throws_numbers{false}, reads_throw{false};
  std::shared_ptr<Gate> hold_looks;  // they read, then wait
  std::vector<std::chrono::steady_clock::time_point> look_times;
  std::function<void()> older_ended;  // what happens while the filter waits for older transactions

  void add(Id id) {
    const std::lock_guard lock(mutex);
    ids.insert(id);
  }
  void add(Id first, Id last) {
    const std::lock_guard lock(mutex);
    for (Id id = first; id <= last; ++id) ids.insert(ids.end(), id);
  }

  IdFilter::Source source() {
    IdFilter::Source source;
    source.read_ids = [this](Id after, std::size_t limit) -> asio::awaitable<std::vector<Id>> {
      ++reads;
      if (throws_numbers || reads_throw) throw 7;
      if (failing) throw Unavailable("the store is away");
      const std::lock_guard lock(mutex);
      std::vector<Id> page;
      for (auto at = ids.upper_bound(after); at != ids.end() && page.size() < limit; ++at)
        page.push_back(*at);
      co_return page;
    };
    source.highest_id = [this]() -> asio::awaitable<Id> {
      ++looks;
      if (throws_numbers) throw 7;
      Id highest = 0;
      {
        const std::lock_guard lock(mutex);
        look_times.push_back(std::chrono::steady_clock::now());
        if (failing) throw Unavailable("the store is away");
        if (!ids.empty()) highest = *ids.rbegin();
      }
      if (const auto held = hold_looks) co_await held->wait();
      co_return highest;
    };
    if (older_ended) {
      source.older_transactions_ended = [this]() -> asio::awaitable<void> {
        older_ended();
        co_return;
      };
    }
    return source;
  }
};

class IdFilterTest : public testing::Test {
 protected:
  void make(IdFilter::Options options) {
    options.clock = &clock_;
    filter_.emplace(std::move(options), rows_.source(), io_.get_executor());
  }
  // At a rate of false positives at which none shows: one more than these tests expect would fail them by chance.
  void make() { make({.name = "test", .expected = 10'000, .false_positive_rate = kNoFalsePositives}); }
  void fill() {
    filter_->start();
    turn(io_);
    ASSERT_TRUE(filter_->filled());
    clock_.advance(1s);
  }
  std::future<Membership> start(Id id) { return start_on(io_.get_executor(), filter_->membership(id)); }
  Membership ask(Id id) {
    auto answer = start(id);
    return finish(io_, answer);
  }
  static constexpr double kNoFalsePositives = 1e-6;
  double denied_of(Id first, Id last) {
    int denied = 0;
    for (Id id = first; id <= last; ++id) denied += ask(id) == Membership::absent ? 1 : 0;
    return static_cast<double>(denied) / static_cast<double>(last - first + 1);
  }

  ManualClock clock_;
  asio::io_context io_;
  Rows rows_;
  std::optional<IdFilter> filter_;
};

TEST_F(IdFilterTest, UntilItIsFilledNothingIsDenied) {
  rows_.add(1, 100);
  make();
  EXPECT_EQ(ask(5), Membership::fresh);
  EXPECT_EQ(ask(1'000'000), Membership::fresh);
  EXPECT_EQ(ask(0), Membership::absent);  // no id at all
  EXPECT_EQ(ask(-5), Membership::absent);
  EXPECT_EQ(rows_.looks + rows_.reads, 0);
}

TEST_F(IdFilterTest, KnowsWhoIsThereWithoutTheStore) {
  for (Id id = 2; id <= 100'000; id += 2) rows_.ids.insert(id);
  make({.name = "test", .expected = 50'000, .open_gap = 100});
  fill();
  EXPECT_EQ(filter_->mark(), 100'000);
  const int looks = rows_.looks, reads = rows_.reads;
  EXPECT_EQ(reads, 6);  // pages of 10,000 and one to see the end
  for (Id id = 2; id <= 100'000; id += 98) EXPECT_EQ(ask(id), Membership::unknown) << id;
  int wrong = 0;
  for (Id id = 1; id < 90'000; id += 2) wrong += ask(id) == Membership::absent ? 0 : 1;
  EXPECT_LT(wrong, 45'000 * 0.012);
  EXPECT_EQ(rows_.looks, looks);
  EXPECT_EQ(rows_.reads, reads);
}

TEST_F(IdFilterTest, RecentGapsMayBeRowsThatAreNotCommittedYet) {
  rows_.add(1, 1000);
  rows_.add(50'000);
  rows_.add(50'005);
  make();
  fill();
  EXPECT_GT(denied_of(1001, 1200), 0.9);      // long ago
  EXPECT_GT(denied_of(39'900, 40'004), 0.9);  // over 10,000 below the highest
  EXPECT_EQ(denied_of(40'006, 40'200), 0);
  EXPECT_EQ(denied_of(50'001, 50'004), 0);
  rows_.add(50'003);  // commits late
  EXPECT_EQ(ask(50'003), Membership::unknown);
}

TEST_F(IdFilterTest, AboveTheMarkTheStoreIsLookedAt) {
  rows_.add(1, 100);
  make();
  fill();
  const int before = rows_.looks;
  EXPECT_EQ(ask(101), Membership::absent);
  EXPECT_EQ(rows_.looks, before + 1);
  rows_.add(101);  // another node's
  EXPECT_EQ(ask(101), Membership::fresh);
  EXPECT_EQ(rows_.looks, before + 2);
  turn(io_);  // the mark follows
  EXPECT_EQ(filter_->mark(), 101);
  EXPECT_EQ(ask(101), Membership::unknown);
  EXPECT_EQ(rows_.looks, before + 2);
}

TEST_F(IdFilterTest, ALookThatBeganBeforeTheQuestionDoesNotAnswerIt) {
  rows_.add(1, 100);
  make();
  fill();
  rows_.hold_looks = std::make_shared<Gate>();
  const int before = rows_.looks;
  auto early = start(101);
  turn(io_);
  EXPECT_EQ(rows_.looks, before + 1);  // has read: the highest is 100
  rows_.add(101);
  auto late = start(101);
  std::vector<std::future<Membership>> others;
  others.reserve(1000);
  for (Id id = 102; id < 1000; ++id) others.push_back(start(id));
  turn(io_);
  EXPECT_EQ(rows_.looks, before + 1);  // one at a time
  std::exchange(rows_.hold_looks, nullptr)->open([] {});
  clock_.advance(5ms);
  EXPECT_EQ(finish(io_, early), Membership::absent);
  EXPECT_EQ(finish(io_, late), Membership::fresh);
  for (auto& other : others) EXPECT_EQ(finish(io_, other), Membership::absent);
  EXPECT_EQ(rows_.looks, before + 2);  // shared by all who came meanwhile
}

TEST_F(IdFilterTest, FarAboveWhatCouldHaveBeenCreatedNoLookIsNeeded) {
  rows_.add(1, 100);
  make();
  fill();
  EXPECT_EQ(ask(101), Membership::absent);  // a look of now
  const int before = rows_.looks;
  EXPECT_EQ(ask(100 + 10'001), Membership::absent);
  EXPECT_EQ(ask(std::numeric_limits<Id>::max()), Membership::absent);
  EXPECT_EQ(rows_.looks, before);
  EXPECT_EQ(ask(100 + 10'000), Membership::absent);
  EXPECT_EQ(rows_.looks, before + 1);
  // A second later ten times as many could be there.
  clock_.advance(1s);
  EXPECT_EQ(ask(100 + 110'001), Membership::absent);
  EXPECT_EQ(rows_.looks, before + 1);
  rows_.add(100 + 100'000);
  EXPECT_EQ(ask(100 + 100'000), Membership::fresh);
  EXPECT_EQ(rows_.looks, before + 2);
  clock_.advance(24h * 365 * 20);
  EXPECT_EQ(ask(std::numeric_limits<Id>::max()), Membership::absent);
}

TEST_F(IdFilterTest, OwnCreationsNeedNoLookAndDoNotMoveTheMark) {
  rows_.add(1, 100);
  make();
  fill();
  const int before = rows_.looks;
  filter_->created(5000);
  EXPECT_EQ(ask(5000), Membership::fresh);
  EXPECT_EQ(filter_->mark(), 100);
  EXPECT_EQ(rows_.looks, before);
}

TEST_F(IdFilterTest, AFailedLookIsAFailureNotAnAnswer) {
  rows_.add(1, 100);
  make();
  fill();
  rows_.failing = true;
  EXPECT_THROW(ask(101), Unavailable);
  EXPECT_EQ(ask(50), Membership::unknown);  // what is known stays known
  EXPECT_FALSE(filter_->known(101));
  EXPECT_EQ(filter_->known(1'000'000'000), Membership::absent);
  rows_.failing = false;
  EXPECT_EQ(ask(101), Membership::absent);
}

TEST_F(IdFilterTest, AFillThatFailsIsTriedAgain) {
  rows_.add(1, 100);
  for (auto* const trouble : {&rows_.failing, &rows_.throws_numbers}) {
    *trouble = true;
    make();
    filter_->start();
    turn(io_);
    EXPECT_FALSE(filter_->filled());
    *trouble = false;
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (!filter_->filled() && std::chrono::steady_clock::now() < give_up) io_.run_one_for(10ms);
    EXPECT_TRUE(filter_->filled());
  }
}

// The source is the user's, and so is what it throws: no throw stops the filter for good.
TEST_F(IdFilterTest, ASourceMayThrowWhateverItLikes) {
  rows_.add(1, 100);
  make();
  fill();
  rows_.add(101, 200);
  rows_.throws_numbers = true;
  EXPECT_THROW(ask(300), int);
  rows_.throws_numbers = false;
  rows_.reads_throw = true;
  EXPECT_EQ(ask(300), Membership::absent);  // the look after the one that threw; to move the mark fails
  turn(io_);
  EXPECT_EQ(filter_->mark(), 100);
  rows_.reads_throw = false;
  clock_.advance(1s);
  EXPECT_EQ(ask(300), Membership::absent);
  turn(io_);
  EXPECT_EQ(filter_->mark(), 200);
}

TEST_F(IdFilterTest, AWideGapWaitsForOlderTransactions) {
  rows_.add(1, 100);
  int waits = 0;
  rows_.older_ended = [&] {
    ++waits;
    rows_.add(25'000);  // was open, commits now
  };
  make({.name = "test", .expected = 10'000, .created_at_most = 1'000'000});
  fill();
  EXPECT_EQ(waits, 0);
  rows_.add(50'000);
  EXPECT_EQ(ask(25'000), Membership::fresh);  // not denied while the mark is below
  turn(io_);
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(filter_->mark(), 50'000);
  EXPECT_EQ(ask(25'000), Membership::unknown);
  EXPECT_EQ(ask(50'000), Membership::unknown);
  EXPECT_GT(denied_of(30'000, 30'200), 0.9);
}

TEST_F(IdFilterTest, ManySmallGapsAreBoundedToo) {
  rows_.add(1, 100);
  make({.name = "test", .expected = 10'000, .created_at_most = 1'000'000'000});
  fill();
  const auto bytes = filter_->bytes();
  for (Id id = 10'000; id <= 50'000'000; id += 9000) rows_.add(id);  // five thousand gaps, 45 million ids
  EXPECT_EQ(ask(60'000'000), Membership::absent);
  turn(io_);
  EXPECT_GT(filter_->mark(), 49'000'000);
  EXPECT_EQ(ask(10'000 + 9000 * 1000), Membership::unknown);
  EXPECT_LE(filter_->bytes(), bytes * 8);
}

TEST_F(IdFilterTest, GrowsBeyondWhatWasExpected) {
  rows_.add(1, 50'000);
  make({.name = "test", .expected = 1000, .open_gap = 0});
  fill();
  for (Id id = 1; id <= 50'000; id += 7) ASSERT_EQ(ask(id), Membership::unknown);
  EXPECT_LT(filter_->bytes(), 50'000U * 4);
}

TEST_F(IdFilterTest, AMillionInventedIdsCostAFewLooks) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  rows_.add(1, 1000);
  make();
  fill();
  const int before = rows_.looks + rows_.reads;
  int loads = 0;
  auto attack = start_on(io_.get_executor(), [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 1'000'000; ++i) {
      const Id invented = static_cast<Id>(random.next() >> (1 + random.below(40))) + 50'000'000;
      loads += co_await filter_->membership(invented) == Membership::absent ? 0 : 1;
      if (i % 1000 == 0) clock_.advance(1ms);
    }
  });
  finish(io_, attack);
  EXPECT_EQ(loads, 0);
  EXPECT_LE(rows_.looks + rows_.reads - before, 3);
}

TEST_F(IdFilterTest, TenThousandAtOnceJustAboveTheMarkShareTheirLooks) {
  rows_.add(1, 1000);
  make();
  fill();
  const int before = rows_.looks;
  std::vector<std::future<Membership>> answers;
  answers.reserve(10'000);
  for (Id id = 1001; id <= 11'000; ++id) answers.push_back(start(id));
  for (auto& answer : answers) EXPECT_EQ(finish(io_, answer), Membership::absent);
  EXPECT_LE(rows_.looks - before, 2);
}

// The attack from above the mark: invented ids that could just have been created, so that only a look tells, while
// other nodes really create some. In each wave of 10,000 at once there is a row that was just created.
TEST_F(IdFilterTest, AFloodFromAboveTheMarkCostsALookAWave) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  constexpr int kWaves = 40, kWave = 10'000;
  Id highest = 1000;
  rows_.add(1, highest);
  make();
  fill();
  const auto bytes = filter_->bytes();
  const int looks = rows_.looks, reads = rows_.reads;
  for (int wave = 0; wave < kWaves; ++wave) {
    clock_.advance(5ms);
    rows_.add(++highest);
    std::vector<std::pair<Id, std::future<Membership>>> answers;
    answers.reserve(kWave);
    for (int i = 0; i < kWave; ++i) {
      const Id asked = i == kWave / 2 ? highest : highest + 1 + static_cast<Id>(random.below(9000));
      answers.emplace_back(asked, start(asked));
    }
    for (auto& [id, answer] : answers)
      ASSERT_EQ(finish(io_, answer), id == highest ? Membership::fresh : Membership::absent) << id;
  }
  turn(io_);
  EXPECT_LE(rows_.looks - looks, 2 * kWaves);  // for 400,000 questions
  // The mark follows every 100 ms, which is 20 waves; each time one page.
  EXPECT_LE(rows_.reads - reads, 1 + kWaves / 20);
  EXPECT_GT(filter_->mark(), 1000);
  EXPECT_EQ(filter_->bytes(), bytes);
}

TEST_F(IdFilterTest, AFloodFromAboveTheMarkDoesNotHammerAStoreThatIsAway) {
  rows_.add(1, 1000);
  make();
  fill();
  rows_.failing = true;
  const int looks = rows_.looks, reads = rows_.reads;
  std::vector<std::future<Membership>> answers;
  answers.reserve(10'000);
  for (Id id = 1001; id <= 11'000; ++id) answers.push_back(start(id));
  for (auto& answer : answers)
    EXPECT_THROW(finish(io_, answer), Unavailable);  // nobody knows: none is denied
  EXPECT_LE(rows_.looks - looks, 2);
  EXPECT_EQ(rows_.reads, reads);
}

TEST_F(IdFilterTest, StoppingEndsWaitsAndWork) {
  rows_.add(1, 100);
  make();
  fill();
  rows_.hold_looks = std::make_shared<Gate>();
  auto waiting = start(101);
  turn(io_);
  filter_->stop();
  EXPECT_THROW(finish(io_, waiting), Unavailable);
  std::exchange(rows_.hold_looks, nullptr)->open([] {});
  filter_.reset();
  turn(io_);
}

// How long five looks of one filter take from before the first until the last: four distances at least. (Between
// two of them it could look shorter, when a look's own time was noted late.)
std::chrono::steady_clock::duration time_of_five_looks(bool failing) {
  const auto began = std::chrono::steady_clock::now();
  Rows rows;
  rows.add(1, 100);
  asio::io_context io;
  IdFilter filter({.name = "test", .expected = 1000, .false_positive_rate = 1e-6, .look_interval = 20ms},
                  rows.source(), io.get_executor());
  filter.start();  // the first look
  turn(io);
  rows.failing = failing;
  for (int i = 0; i < 4; ++i) {
    auto answer = start_on(io.get_executor(), filter.membership(200 + i));
    if (failing) {
      EXPECT_THROW(finish(io, answer), Unavailable);
    } else {
      EXPECT_EQ(finish(io, answer), Membership::absent);
    }
  }
  EXPECT_EQ(rows.look_times.size(), 5U);
  return rows.look_times.back() - began;
}

TEST(IdFilter, LooksKeepTheirDistance) {
  EXPECT_GE(time_of_five_looks(false), 80ms);
}

TEST(IdFilter, LooksThatFailKeepTheirDistanceToo) {
  EXPECT_GE(time_of_five_looks(true), 80ms);
}

// Creators take ids in order and commit them in any order, as transactions do. Readers ask for rows that they
// know are there (never denied) while attackers ask for ids that nobody has created.
TEST(IdFilterConcurrency, NoRealRowIsEverDenied) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Rows rows;
  rows.older_ended = [] {};
  rows.add(1, 2000);
  asio::thread_pool pool(2);
  std::atomic<Id> next{2001};
  std::atomic<bool> stop{false};
  IdFilter filter({.name = "creators", .expected = 500}, rows.source(), pool.get_executor());
  filter.start();
  std::deque<ThreadLoop> loops(2);
  std::vector<std::thread> creators;
  creators.reserve(2);
  for (std::uint64_t creator = 0; creator < 2; ++creator) {
    creators.emplace_back([&, creator] {
      Random random(seed + creator);
      std::vector<Id> open;
      for (int i = 0; i < 1500; ++i) {
        open.push_back(next++);
        if (random.chance(0.02)) next += static_cast<Id>(random.below(20));  // rolled back
        while (!open.empty() && random.chance(0.5)) {
          std::swap(open[random.below(open.size())], open.back());
          rows.add(open.back());
          open.pop_back();
        }
        std::this_thread::sleep_for(200us);
      }
      for (const Id id : open) rows.add(id);
    });
  }
  std::vector<std::future<void>> readers;
  readers.reserve(16);
  for (std::uint64_t reader = 0; reader < 16; ++reader) {
    readers.push_back(start_on(loops[reader % 2].executor(), [&, reader]() -> asio::awaitable<void> {
      Random random(seed + 100 + reader);
      while (!stop) {
        Id id = 0;
        bool real = random.chance(0.7);
        {
          const std::lock_guard lock(rows.mutex);
          // Mostly among the newest.
          auto at = rows.ids.upper_bound(*rows.ids.rbegin() - static_cast<Id>(random.below(50)));
          if (random.chance(0.2)) at = rows.ids.upper_bound(static_cast<Id>(random.below(2000)));
          if (at == rows.ids.end()) real = false;
          id = real ? *at : *rows.ids.rbegin() + 1'000'000 + static_cast<Id>(random.below(1000));
        }
        const bool denied = co_await filter.membership(id) == Membership::absent;
        if (real) EXPECT_FALSE(denied) << id << " mark " << filter.mark();
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      }
    }));
  }
  for (auto& creator : creators) creator.join();
  stop = true;
  for (auto& reader : readers) reader.get();
  EXPECT_TRUE(filter.filled());
  EXPECT_GT(filter.mark(), 2000);
  filter.stop();
  pool.join();
}

}  // namespace
}  // namespace weir::cache

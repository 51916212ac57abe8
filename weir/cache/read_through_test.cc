#include "weir/cache/read_through.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstdlib>
#include <new>

#include "weir/cache/read_through_fixture.h"
#include "weir/testing/sanitized.h"

// Counts this thread's allocations, so that a test can tell that there are none. The sanitizers bring their
// own.
#if !WEIR_SANITIZED
#define WEIR_COUNT_ALLOCATIONS 1
namespace {
thread_local std::size_t allocations = 0;
}
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Cache = TextCache;

TEST_F(ReadThroughTest, LoadsOnceAndThenKnows) {
  EXPECT_FALSE(cache_->find(1));
  EXPECT_EQ(store_.loads, 0);
  EXPECT_EQ(*get(1), "one");
  EXPECT_EQ(*get(1), "one");
  ASSERT_TRUE(cache_->find(1));
  EXPECT_EQ(**cache_->find(1), "one");
  EXPECT_EQ(store_.loads, 1);
}

TEST_F(ReadThroughTest, AnExpiredHotKeyIsLoadedOnceForAHundredReaders) {
  get(1);
  clock_.advance(1min);
  store_.hold_loads();
  std::vector<std::future<Cache::Found>> readers;
  readers.reserve(100);
  for (int i = 0; i < 100; ++i) readers.push_back(start(1));
  turn(io_);
  store_.let_go();
  for (auto& reader : readers) EXPECT_EQ(*finish(io_, reader), "one");
  EXPECT_EQ(store_.loads, 2);
  EXPECT_EQ(series(metric("weir_cache_coalesced_total", "")), 99);
}

TEST_F(ReadThroughTest, AnAbsenceIsAnAnswerThatIsKeptShortly) {
  EXPECT_FALSE(get(9));
  EXPECT_FALSE(get(9));
  ASSERT_TRUE(cache_->find(9));    // known ...
  EXPECT_FALSE(*cache_->find(9));  // ... to be absent
  EXPECT_EQ(store_.loads, 1);
  clock_.advance(5s);
  EXPECT_FALSE(cache_->find(9));
  EXPECT_FALSE(get(9));
  EXPECT_EQ(store_.loads, 2);
}

TEST_F(ReadThroughTest, NegativeTtlsAreNeverZeroOrForever) {
  for (const auto ttl : {-5ms, 0ms, 1ms}) {
    auto given = options();
    given.negative_ttl = ttl;
    given.jitter = 0.9;
    make(given);
    get(9);
    EXPECT_TRUE(cache_->find(9)) << ttl.count();
    clock_.advance(2ms);
    EXPECT_FALSE(cache_->find(9)) << ttl.count();
  }
}

TEST_F(ReadThroughTest, AFailureIsNeverKept) {
  store_.failing = true;
  EXPECT_THROW(get(1), Unavailable);
  EXPECT_THROW(get(9), Unavailable);
  EXPECT_FALSE(cache_->find(1));
  EXPECT_FALSE(cache_->find(9));
  store_.failing = false;
  EXPECT_EQ(*get(1), "one");
  EXPECT_FALSE(get(9));
  EXPECT_EQ(store_.loads, 4);
  EXPECT_EQ(loads("error"), 2);
}

TEST_F(ReadThroughTest, PastTheSoftTtlOneReaderRefreshesAndNobodyWaits) {
  auto given = options();
  given.soft_ttl = 10s;
  make(given);
  get(1);
  clock_.advance(10s);
  store_.rows[1] = "new";
  store_.hold_loads();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(**cache_->find(1), "one");
    EXPECT_EQ(*get(1), "one");
  }
  turn(io_);
  EXPECT_EQ(store_.loads, 2);
  store_.let_go();
  turn(io_);
  EXPECT_EQ(**cache_->find(1), "new");
  EXPECT_EQ(lookups("local", "stale_hit"), 20);
  EXPECT_EQ(lookups("local", "hit"), 1);
}

TEST_F(ReadThroughTest, ARefreshThatFailsIsNotTheLast) {
  auto given = options();
  given.soft_ttl = 10s;
  given.load_timeout = 2s;
  make(given);
  get(1);
  clock_.advance(10s);
  store_.failing = true;
  EXPECT_EQ(**cache_->find(1), "one");
  turn(io_);
  EXPECT_EQ(**cache_->find(1), "one");  // what there is goes on being served
  EXPECT_EQ(store_.loads, 2);
  store_.failing = false;
  store_.rows[1] = "new";
  clock_.advance(2s);
  EXPECT_EQ(**cache_->find(1), "one");
  turn(io_);
  EXPECT_EQ(**cache_->find(1), "new");
  EXPECT_EQ(store_.loads, 3);
}

TEST_F(ReadThroughTest, ARefreshThatFindsNothingMakesItAbsent) {
  auto given = options();
  given.soft_ttl = 10s;
  make(given);
  get(1);
  store_.rows.erase(1);
  clock_.advance(10s);
  EXPECT_TRUE(*cache_->find(1));
  turn(io_);
  EXPECT_FALSE(*cache_->find(1));
}

TEST_F(ReadThroughTest, EntriesExpireSpreadWithinTheJitter) {
  auto given = options();
  given.jitter = 0.1;
  given.ttl = 100s;
  make(given);
  for (int key = 0; key < 500; ++key) cache_->fill(key, cache_->lease(key), text("x"));
  const auto alive = [&] {
    int count = 0;
    for (int key = 0; key < 500; ++key) count += cache_->find(key) ? 1 : 0;
    return count;
  };
  clock_.advance(90s - 1ns);
  EXPECT_EQ(alive(), 500);
  clock_.advance(10s);
  EXPECT_GT(alive(), 150);
  EXPECT_LT(alive(), 350);
  clock_.advance(10s + 1ns);
  EXPECT_EQ(alive(), 0);
}

TEST_F(ReadThroughTest, TheCallerMayChooseTheTtl) {
  auto preload = start_on(io_.get_executor(), cache_->get(1, 5s));
  finish(io_, preload);
  cache_->fill(2, cache_->lease(2), text("ahead"), 2h);
  clock_.advance(5s);
  EXPECT_FALSE(cache_->find(1));
  clock_.advance(1h);
  EXPECT_TRUE(cache_->find(2));
}

TEST_F(ReadThroughTest, ALoadThatHangsEndsInTimedOut) {
  auto given = options();
  given.load_timeout = 20ms;
  make(given);
  store_.hold_loads();
  EXPECT_THROW(get(1), TimedOut);
  store_.hold = nullptr;
  EXPECT_EQ(*get(1), "one");
  EXPECT_EQ(loads("timeout"), 1);
  EXPECT_EQ(loads("error"), 0);
  EXPECT_EQ(loads("ok"), 1);
}

TEST_F(ReadThroughTest, AHugeValueIsServedAndNotKept) {
  auto given = options();
  given.weigher = [](int, const std::string& value) { return value.size(); };
  given.max_entry_weight = 1000;
  make(given);
  store_.rows[1] = std::string(1000, 'a');
  store_.rows[2] = std::string(1001, 'b');
  EXPECT_EQ(get(1)->size(), 1000U);
  EXPECT_EQ(get(2)->size(), 1001U);
  EXPECT_TRUE(cache_->find(1));
  EXPECT_FALSE(cache_->find(2));
  EXPECT_EQ(get(2)->size(), 1001U);
  EXPECT_EQ(store_.loads, 3);
  // What has grown too heavy doesn't leave its lighter past behind.
  EXPECT_FALSE(cache_->fill(1, cache_->lease(1), text(std::string(2000, 'c'))));
  EXPECT_FALSE(cache_->find(1));
}

TEST_F(ReadThroughTest, TheFilterSparesTheStore) {
  auto given = options();
  given.membership = [this](const int& key) -> asio::awaitable<Membership> {
    if (store_.failing) throw Unavailable("nobody knows");
    co_return key > 1000 ? Membership::absent : key > 100 ? Membership::fresh : Membership::unknown;
  };
  make(given);
  EXPECT_FALSE(get(5000));
  EXPECT_EQ(store_.loads, 0);
  EXPECT_EQ(lookups("filter", "filtered"), 1);
  EXPECT_FALSE(get(50));
  EXPECT_TRUE(cache_->find(50));
  // Above the mark: the row may be about to appear, an absence isn't kept; a value is.
  EXPECT_FALSE(get(500));
  EXPECT_FALSE(cache_->find(500));
  store_.rows[500] = "there now";
  EXPECT_EQ(*get(500), "there now");
  EXPECT_TRUE(cache_->find(500));
  store_.failing = true;
  EXPECT_THROW(get(6000), Unavailable);
  EXPECT_EQ(lookups("filter", "error"), 1);
}

TEST_F(ReadThroughTest, WhatTheFilterTellsAtOnceIsNotAskedFor) {
  auto given = options();
  int asked = 0;
  given.membership = [&](const int&) -> asio::awaitable<Membership> {
    ++asked;
    co_return Membership::absent;
  };
  given.membership_at_once = [](const int& key) -> std::optional<Membership> {
    if (key == 7) throw Unavailable("nobody knows");
    if (key < 3) return key == 1 ? Membership::unknown : Membership::fresh;
    return key == 3 ? std::nullopt : std::optional(Membership::absent);
  };
  make(given);
  EXPECT_TRUE(get(1));
  EXPECT_TRUE(get(2));
  EXPECT_FALSE(get(4));
  EXPECT_EQ(asked, 0);
  EXPECT_FALSE(get(3));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(lookups("filter", "filtered"), 2);
  EXPECT_THROW(get(7), Unavailable);
  EXPECT_EQ(lookups("filter", "error"), 1);
}

// Whether or not the filter can be cancelled.
TEST_F(ReadThroughTest, AFilterThatHangsEndsInTimedOut) {
  for (const bool deaf : {false, true}) {
    auto given = options();
    given.load_timeout = 20ms;
    const auto never = std::make_shared<Gate>();
    int ended = 0;
    given.membership = [&ended, never, deaf](const int& key) -> asio::awaitable<Membership> {
      if (key == 7) throw 7;
      if (deaf) co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
      try {
        co_await never->wait();
      } catch (const boost::system::system_error&) {
        ++ended;
        throw;
      }
      co_return Membership::unknown;
    };
    make(given);
    EXPECT_THROW(get(1), TimedOut);
    turn(io_);
    EXPECT_EQ(ended, deaf ? 0 : 1);
    EXPECT_EQ(store_.loads, 0);
    EXPECT_EQ(lookups("filter", "error"), deaf ? 3 : 1);
    auto told = start_on(io_.get_executor(), cache_->explain(1));
    EXPECT_EQ(finish(io_, told).membership_error, "the membership filter took too long");
    EXPECT_THROW(get(7), int);
    told = start_on(io_.get_executor(), cache_->explain(7));
    EXPECT_FALSE(finish(io_, told).membership_error.empty());
    cache_.reset();
    never->open([] {});
    turn(io_);
  }
}

TEST_F(ReadThroughTest, WhoWaitsForTheFilterCanBeCancelled) {
  auto given = options();
  bool filter_ended = false;
  given.membership = [&](const int&) -> asio::awaitable<Membership> {
    try {
      co_await pause(1h);
    } catch (const boost::system::system_error&) {
      filter_ended = true;
      throw;
    }
    co_return Membership::unknown;
  };
  make(given);
  asio::cancellation_signal cancel;
  std::exception_ptr error;
  asio::co_spawn(io_, cache_->get(1),
                 asio::bind_cancellation_slot(
                     cancel.slot(), [&](std::exception_ptr e, const TextCache::Found&) { error = e; }));
  turn(io_);
  cancel.emit(asio::cancellation_type::terminal);
  turn(io_);
  ASSERT_TRUE(error);
  EXPECT_THROW(std::rethrow_exception(error), boost::system::system_error);
  EXPECT_TRUE(filter_ended);
}

// What a call returns stands by itself: it may be dropped, and begun after the cache and its arguments have gone.
TEST_F(ReadThroughTest, WhatIsNotBegunNeedsNothing) {
  using Texts = ReadThrough<std::string, std::string>;
  std::optional<Texts> texts;
  texts.emplace(
      Texts::Options{.name = "not_begun"},
      [](std::string key) -> asio::awaitable<std::optional<std::string>> { co_return key + "!"; },
      io_.get_executor());
  const std::string long_key = "a key that is too long to lie in its string";
  {
    auto dropped = texts->get(long_key);
    auto dropped_too = texts->get_all(std::vector{long_key});
    auto write = texts->begin_write(long_key);
    auto explained = texts->explain(long_key);
  }
  auto keys = std::make_unique<std::vector<std::string>>(2, long_key);
  auto all = texts->get_all(*keys);
  auto one = texts->get(keys->front());
  keys.reset();
  auto loaded = start_on(io_.get_executor(), std::move(all));
  EXPECT_EQ(*finish(io_, loaded).at(1), long_key + "!");
  auto found = start_on(io_.get_executor(), std::move(one));
  EXPECT_EQ(*finish(io_, found), long_key + "!");

  auto late = texts->get("another");
  auto known = texts->get(long_key);
  auto late_too = texts->get_all(std::vector<std::string>{"another"});
  auto begun = texts->begin_write(long_key);
  auto write = start_on(io_.get_executor(), std::move(begun));
  std::optional writing = finish(io_, write);
  auto invalidation = writing->invalidate();
  writing.reset();
  texts.reset();
  auto refused = start_on(io_.get_executor(), std::move(late));
  EXPECT_THROW(finish(io_, refused), Unavailable);
  auto served = start_on(io_.get_executor(), std::move(known));
  EXPECT_THROW(finish(io_, served), Unavailable);  // the write has dropped it
  auto refused_too = start_on(io_.get_executor(), std::move(late_too));
  EXPECT_THROW(finish(io_, refused_too), Unavailable);
  auto invalidated = start_on(io_.get_executor(), std::move(invalidation));
  EXPECT_TRUE(finish(io_, invalidated));
}

TEST_F(ReadThroughTest, WhoComesFromTheFilterAfterTheFillLoadsNothing) {
  auto given = options();
  auto asked = std::make_shared<Gate>();
  bool slow = true;
  given.membership = [&, asked](const int&) -> asio::awaitable<Membership> {
    if (std::exchange(slow, false)) co_await asked->wait();
    co_return Membership::unknown;
  };
  make(given);
  auto late = start(1);  // has looked and missed
  turn(io_);
  EXPECT_EQ(*get(1), "one");
  asked->open([] {});
  EXPECT_EQ(*finish(io_, late), "one");
  EXPECT_EQ(store_.loads, 1);
}

TEST_F(ReadThroughTest, MetricsAreThereFromTheStartAndCount) {
  for (const char* result : {"hit", "negative_hit", "stale_hit", "miss"})
    EXPECT_EQ(lookups("local", result), 0);
  for (const char* result : {"hit", "miss", "error"}) EXPECT_EQ(lookups("store", result), 0);
  EXPECT_EQ(lookups("filter", "filtered"), 0);
  for (const char* outcome : {"ok", "absent", "error", "timeout"}) EXPECT_EQ(loads(outcome), 0);
  EXPECT_EQ(series(metric("weir_cache_coalesced_total", "")), 0);
  cache_->find(1);
  get(1);
  get(1);
  cache_->find(1);
  get(9);
  get(9);
  EXPECT_EQ(lookups("local", "miss"), 2);
  EXPECT_EQ(lookups("local", "hit"), 2);
  EXPECT_EQ(lookups("local", "negative_hit"), 1);
  EXPECT_EQ(lookups("store", "hit"), 1);
  EXPECT_EQ(lookups("store", "miss"), 1);
  EXPECT_EQ(loads("ok"), 1);
  EXPECT_EQ(loads("absent"), 1);
  EXPECT_EQ(series(metric("weir_cache_entries", "")), 2);
  cache_.reset();
  EXPECT_EQ(lookups("local", "hit"), 2);  // what was counted stays
}

#if WEIR_COUNT_ALLOCATIONS
TEST_F(ReadThroughTest, FindingAllocatesNothing) {
  get(1);
  get(9);
  const std::size_t before = allocations;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(cache_->find(1)->value);
    ASSERT_FALSE(cache_->find(9)->value);
    ASSERT_FALSE(cache_->find(2));
  }
  EXPECT_EQ(allocations, before);
}
#endif

TEST_F(ReadThroughTest, AfterAStopWhatIsKnownIsStillServed) {
  get(1);
  store_.hold_loads();
  auto waiting = start(2);
  turn(io_);
  cache_->stop();
  EXPECT_THROW(finish(io_, waiting), Unavailable);
  EXPECT_EQ(*get(1), "one");
  EXPECT_THROW(get(3), Unavailable);
  store_.let_go();
  turn(io_);
}

TEST_F(ReadThroughTest, TheCacheMayGoWhileALoadIsUnderWay) {
  store_.hold_loads();
  auto waiting = start(2);
  turn(io_);
  cache_.reset();
  EXPECT_THROW(finish(io_, waiting), Unavailable);
  store_.let_go();
  turn(io_);
}

TEST_F(ReadThroughTest, ATtlOfOneReadIsNoTtlOfAnAbsence) {
  auto given = options();
  given.negative_ttl = std::chrono::seconds(5);
  make(given);
  auto read = start_on(io_.get_executor(), cache_->get(77, std::chrono::hours(24)));
  EXPECT_FALSE(finish(io_, read));
  EXPECT_TRUE(cache_->find(77));
  clock_.advance(std::chrono::seconds(5));
  EXPECT_FALSE(cache_->find(77));
}

TEST_F(ReadThroughTest, MillisecondsWithoutEndAreForEver) {
  auto given = options();
  given.ttl = std::chrono::milliseconds::max();
  make(given);
  EXPECT_TRUE(get(1));
  clock_.advance(std::chrono::hours(24 * 365 * 50));
  EXPECT_TRUE(cache_->find(1));
}

}  // namespace
}  // namespace weir::cache

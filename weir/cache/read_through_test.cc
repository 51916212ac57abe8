#include "weir/cache/read_through.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <new>
#include <string>

#include "weir/cache/test_loop.h"

// Counts this thread's allocations, so that a test can tell that there are none. The sanitizers bring their
// own.
#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
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
using Cache = ReadThrough<int, std::string>;

std::shared_ptr<const std::string> text(const std::string& t) {
  return std::make_shared<const std::string>(t);
}

double series(const std::string& line_start) {
  const std::string all = telemetry::scrape();
  const auto at = all.find(line_start + " ");
  return at == std::string::npos ? -1 : std::stod(all.substr(at + line_start.size()));
}

// A store whose loads can be held up, refused and counted.
struct Store {
  std::map<int, std::string> rows;
  int loads = 0, bulk_loads = 0;
  bool failing = false;
  std::shared_ptr<Gate> hold;  // loads read, then wait for it: the worst moment for a write

  Cache::Load load() {
    return [this](int key) -> asio::awaitable<std::optional<std::string>> {
      ++loads;
      std::optional<std::string> row;
      if (const auto at = rows.find(key); at != rows.end()) row = at->second;
      const bool fails = failing;
      if (const auto held = hold) co_await held->wait();
      if (fails) throw Unavailable("the store is away");
      co_return row;
    };
  }
  Cache::BulkLoad bulk_load() {
    return [this](std::vector<int> keys) -> asio::awaitable<std::vector<std::pair<int, std::string>>> {
      ++bulk_loads;
      std::vector<std::pair<int, std::string>> found;
      for (const int key : keys)
        if (const auto at = rows.find(key); at != rows.end()) found.emplace_back(*at);
      if (const auto held = hold) co_await held->wait();
      if (failing) throw Unavailable("the store is away");
      co_return found;
    };
  }
  void hold_loads() { hold = std::make_shared<Gate>(); }
  void let_go() {
    const auto held = std::exchange(hold, nullptr);
    held->open([] {});
  }
};

class ReadThroughTest : public testing::Test {
 protected:
  Cache::Options options() {
    return {.name = testing::UnitTest::GetInstance()->current_test_info()->name(),
            .ttl = 1min,
            .jitter = 0,
            .clock = &clock_};
  }
  void make(Cache::Options given) { cache_.emplace(std::move(given), store_.load(), io_.get_executor()); }
  void SetUp() override {
    store_.rows = {{1, "one"}, {2, "two"}, {3, "three"}};
    make(options());
  }
  std::future<Cache::Found> start(int key) { return start_on(io_.get_executor(), cache_->get(key)); }
  Cache::Found get(int key) {
    auto read = start(key);
    return finish(io_, read);
  }
  std::string metric(const std::string& name, const std::string& labels) {
    return name + "{cache=\"" + options().name + "\"" + labels + "}";
  }
  double lookups(const std::string& level, const std::string& result) {
    return series(metric("weir_cache_lookups_total", ",level=\"" + level + "\",result=\"" + result + "\""));
  }
  double loads(const std::string& outcome) {
    return series(metric("weir_cache_loads_total", ",outcome=\"" + outcome + "\""));
  }

  ManualClock clock_;
  asio::io_context io_;
  Store store_;
  std::optional<Cache> cache_;
};

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

TEST_F(ReadThroughTest, CreatingTheRowClearsItsAbsence) {
  EXPECT_FALSE(get(9));
  store_.rows[9] = "nine";
  cache_->invalidate(9);
  EXPECT_EQ(*get(9), "nine");
}

TEST_F(ReadThroughTest, AnAbsenceReadBeforeTheCreationDoesNotOutliveIt) {
  store_.hold_loads();
  auto early = start(9);
  turn(io_);
  store_.rows[9] = "nine";
  cache_->invalidate(9);
  store_.let_go();
  EXPECT_FALSE(finish(io_, early));
  EXPECT_FALSE(cache_->find(9));
  EXPECT_EQ(*get(9), "nine");
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

TEST_F(ReadThroughTest, AWriteDuringALoadKeepsTheOldValueOut) {
  store_.hold_loads();
  auto early = start(1);
  turn(io_);
  store_.rows[1] = "new";
  cache_->invalidate(1);
  auto late = start(1);  // after the write: must not get what was read before it
  turn(io_);
  EXPECT_EQ(store_.loads, 2);
  store_.let_go();
  EXPECT_EQ(*finish(io_, early), "one");  // it asked before the write
  EXPECT_EQ(*finish(io_, late), "new");
  EXPECT_EQ(**cache_->find(1), "new");
}

TEST_F(ReadThroughTest, AClearDuringALoadDoesToo) {
  get(2);
  store_.hold_loads();
  auto early = start(1);
  turn(io_);
  store_.rows[1] = "new";
  cache_->clear();
  store_.let_go();
  finish(io_, early);
  EXPECT_FALSE(cache_->find(1));
  EXPECT_FALSE(cache_->find(2));
  EXPECT_EQ(cache_->size(), 0U);
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

TEST_F(ReadThroughTest, PublishingAheadNeedsALeaseThatNobodyCancelled) {
  auto first = cache_->lease(1), second = cache_->lease(1);
  store_.rows[1] = "mine";
  cache_->invalidate(1, first);
  EXPECT_FALSE(cache_->fill(1, std::move(second), text("other")));
  EXPECT_TRUE(cache_->fill(1, std::move(first), text("mine"), 10min));
  EXPECT_EQ(**cache_->find(1), "mine");
  EXPECT_EQ(store_.loads, 0);
}

// Two writers in every order of their steps: lease, commit, invalidate, fill. In the end the cache holds
// nothing or what the store holds.
TEST_F(ReadThroughTest, TwoPublishersNeverLeaveTheOldValue) {
  for (unsigned order = 0; order < 256; ++order) {
    if (std::popcount(order) != 4) continue;
    make(options());
    std::string stored;
    Cache::Lease leases[2];
    int step[2] = {0, 0};
    for (int i = 0; i < 8; ++i) {
      const auto who = static_cast<std::size_t>(order >> i & 1U);
      const std::string mine = who == 0 ? "first" : "second";
      switch (step[who]++) {
        case 0:
          leases[who] = cache_->lease(1);
          break;
        case 1:
          stored = mine;
          break;
        case 2:
          cache_->invalidate(1, leases[who]);
          break;
        default:
          cache_->fill(1, std::move(leases[who]), text(mine));
      }
    }
    if (const auto found = cache_->find(1)) EXPECT_EQ(**found, stored) << order;
  }
}

TEST_F(ReadThroughTest, ANewerVersionIsNotOverwritten) {
  const auto newer = [](const std::string& cached, const std::string& offered) { return offered > cached; };
  EXPECT_TRUE(cache_->fill_if_newer(1, cache_->lease(1), text("v2"), newer));
  EXPECT_FALSE(cache_->fill_if_newer(1, cache_->lease(1), text("v1"), newer));
  EXPECT_EQ(**cache_->find(1), "v2");
  EXPECT_TRUE(cache_->fill_if_newer(1, cache_->lease(1), text("v3"), newer));
  EXPECT_EQ(**cache_->find(1), "v3");
}

TEST_F(ReadThroughTest, AnUpdateWritesThroughWhatIsThere) {
  const auto more = [](const std::string& old) { return text(old + "+"); };
  EXPECT_FALSE(cache_->update(1, more));
  get(1);
  clock_.advance(59s);
  EXPECT_TRUE(cache_->update(1, more));
  EXPECT_EQ(**cache_->find(1), "one+");
  EXPECT_FALSE(cache_->update(1, [](const std::string&) { return nullptr; }));
  EXPECT_EQ(**cache_->find(1), "one+");
  clock_.advance(1s);
  EXPECT_FALSE(cache_->find(1));  // the TTL has gone on
  get(9);
  EXPECT_FALSE(cache_->update(9, more));
  EXPECT_FALSE(cache_->find(9));  // whoever updates has a row: the absence is over
}

TEST_F(ReadThroughTest, AnUpdateDuringALoadKeepsTheOldValueOut) {
  store_.hold_loads();
  auto early = start(1);
  turn(io_);
  store_.rows[1] = "one+";
  EXPECT_FALSE(cache_->update(1, [](const std::string& old) { return text(old + "+"); }));
  auto late = start(1);
  turn(io_);
  store_.let_go();
  EXPECT_EQ(*finish(io_, early), "one");
  EXPECT_EQ(*finish(io_, late), "one+");
  EXPECT_EQ(**cache_->find(1), "one+");
}

TEST_F(ReadThroughTest, AnUpdateDuringARefreshIsNotUndoneByIt) {
  auto given = options();
  given.soft_ttl = 10s;
  make(given);
  get(1);
  clock_.advance(10s);
  store_.hold_loads();
  cache_->find(1);
  turn(io_);
  store_.rows[1] = "one+";
  EXPECT_TRUE(cache_->update(1, [](const std::string& old) { return text(old + "+"); }));
  store_.let_go();
  turn(io_);
  EXPECT_EQ(**cache_->find(1), "one+");
}

TEST_F(ReadThroughTest, ManyAreReadWithOneLoad) {
  auto given = options();
  given.bulk_load = store_.bulk_load();
  make(given);
  get(2);
  const std::vector<int> keys{3, 9, 1, 2, 1};
  auto read = start_on(io_.get_executor(), cache_->get_all(keys));
  const auto found = finish(io_, read);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(*found[0], "three");
  EXPECT_FALSE(found[1]);
  EXPECT_EQ(*found[2], "one");
  EXPECT_EQ(*found[3], "two");
  EXPECT_EQ(*found[4], "one");
  EXPECT_EQ(store_.bulk_loads, 1);
  EXPECT_EQ(store_.loads, 1);
  auto again = start_on(io_.get_executor(), cache_->get_all(keys));
  finish(io_, again);
  EXPECT_EQ(store_.bulk_loads, 1);  // the absence too
}

TEST_F(ReadThroughTest, BulkLoadsJoinWhatIsUnderWayAndAreJoined) {
  auto given = options();
  given.bulk_load = store_.bulk_load();
  make(given);
  store_.hold_loads();
  auto single = start(1);
  turn(io_);
  const std::vector<int> keys{1, 2};
  auto bulk = start_on(io_.get_executor(), cache_->get_all(keys));
  turn(io_);
  auto joined = start(2);
  turn(io_);
  EXPECT_EQ(store_.loads, 1);
  EXPECT_EQ(store_.bulk_loads, 1);
  store_.rows[2] = "new";
  cache_->invalidate(2);
  store_.let_go();
  EXPECT_EQ(*finish(io_, joined), "two");
  EXPECT_EQ(*finish(io_, single), "one");
  EXPECT_EQ(finish(io_, bulk).size(), 2U);
  EXPECT_TRUE(cache_->find(1));
  EXPECT_FALSE(cache_->find(2));  // written meanwhile
}

TEST_F(ReadThroughTest, BulkLoadsAreCutAndTheirFailureIsNotKept) {
  auto given = options();
  given.bulk_load = store_.bulk_load();
  given.max_bulk = 10;
  make(given);
  std::vector<int> keys;
  for (int key = 100; key < 125; ++key) keys.push_back(key);
  auto read = start_on(io_.get_executor(), cache_->get_all(keys));
  finish(io_, read);
  EXPECT_EQ(store_.bulk_loads, 3);
  store_.failing = true;
  const std::vector<int> others{1, 2};
  auto failed = start_on(io_.get_executor(), cache_->get_all(others));
  EXPECT_THROW(finish(io_, failed), Unavailable);
  store_.failing = false;
  auto retried = start_on(io_.get_executor(), cache_->get_all(others));
  EXPECT_EQ(*finish(io_, retried)[0], "one");
}

TEST_F(ReadThroughTest, WithoutABulkLoaderManyAreLoadedSideBySide) {
  store_.hold_loads();
  const std::vector<int> keys{1, 2, 9};
  auto read = start_on(io_.get_executor(), cache_->get_all(keys));
  turn(io_);
  EXPECT_EQ(store_.loads, 3);
  store_.let_go();
  EXPECT_EQ(*finish(io_, read)[1], "two");
  const std::vector<int> none;
  auto nothing = start_on(io_.get_executor(), cache_->get_all(none));
  EXPECT_TRUE(finish(io_, nothing).empty());
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

}  // namespace
}  // namespace weir::cache

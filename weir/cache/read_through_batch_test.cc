// Loads that are batched: single reads that miss at about the same time, and many keys over the remote level.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <new>

#include "weir/cache/read_through_nodes_fixture.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

TEST(LoadBatcher, TakesWhatComesUntilTheNextTurn) {
  asio::io_context io;
  LoadBatcher<int> batcher(io.get_executor());
  std::vector<std::vector<int>> batches;
  const auto done = [&](std::vector<int> items, bool abandoned) {
    EXPECT_FALSE(abandoned);
    batches.push_back(std::move(items));
  };
  batcher.add(1, done);
  batcher.add(2, done);
  EXPECT_TRUE(batches.empty());
  turn(io);
  batcher.add(3, done);
  turn(io);
  EXPECT_EQ(batches, (std::vector<std::vector<int>>{{1, 2}, {3}}));
}

TEST(LoadBatcher, NothingIsLostWithItsExecutor) {
  std::vector<int> abandoned;
  {
    asio::io_context io;
    LoadBatcher<int> batcher(io.get_executor());
    batcher.add(1, [&](std::vector<int> items, bool lost) {
      EXPECT_TRUE(lost);
      abandoned = std::move(items);
    });
    batcher.add(2, [](std::vector<int>, bool) { FAIL() << "the first one's counts"; });
  }
  EXPECT_EQ(abandoned, (std::vector<int>{1, 2}));
}

TEST(LoadBatcherConcurrency, EachItemIsInOneBatch) {
  asio::thread_pool pool(2);
  LoadBatcher<int> batcher(pool.get_executor());
  constexpr int kItems = 20'000;
  std::vector<std::atomic<int>> seen(kItems);
  const auto done = [&](std::vector<int> items, bool) {
    for (const int item : items) ++seen[static_cast<std::size_t>(item)];
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = t; i < kItems; i += 4) batcher.add(i, done);
    });
  for (auto& thread : threads) thread.join();
  pool.join();
  EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& count) { return count == 1; }));
}

struct ReadThroughBatch : ReadThroughNodes {
  TextCache::Options bulk_options() {
    auto given = options();
    given.bulk_load = store_.bulk_load();
    return given;
  }
  void SetUp() override {
    ReadThroughNodes::SetUp();
    make(bulk_options());
  }
  std::vector<std::future<TextCache::Found>> start_all(std::size_t i, int first, int last) {
    std::vector<std::future<TextCache::Found>> reads;
    for (int key = first; key <= last; ++key) reads.push_back(start_on(io_.get_executor(), node(i).get(key)));
    turn(io_);
    return reads;
  }
};

TEST_F(ReadThroughBatch, ReadsThatMissAtTheSameTimeAreOneCall) {
  auto reads = start_all(0, 1, 9);
  EXPECT_EQ(*reads[0].get(), "one");
  EXPECT_EQ(*reads[2].get(), "three");
  EXPECT_FALSE(reads[8].get());
  EXPECT_EQ(store_.bulk_loads, 1);
  EXPECT_EQ(store_.loads, 0);
  EXPECT_EQ(metric("weir_cache_batches_total"), 1);
  EXPECT_EQ(metric("weir_cache_batched_keys_total"), 9);
  EXPECT_EQ(*get(0, 1), "one");
  EXPECT_TRUE(node(0).find(9));
}

TEST_F(ReadThroughBatch, OneAloneIsLoadedAlone) {
  EXPECT_EQ(*get(0, 1), "one");
  EXPECT_EQ(store_.bulk_loads, 0);
  EXPECT_EQ(store_.loads, 1);
}

TEST_F(ReadThroughBatch, BatchesAreBoundedByMaxBulk) {
  auto given = bulk_options();
  given.max_bulk = 10;
  given.remote = {};
  make(given, 1);
  for (auto& read : start_all(0, 100, 124)) EXPECT_FALSE(read.get());
  EXPECT_EQ(store_.bulk_loads, 3);
}

TEST_F(ReadThroughBatch, ABatchThatFailsFailsAllInItAndIsNotKept) {
  store_.failing = true;
  for (auto& read : start_all(0, 1, 5)) EXPECT_THROW(read.get(), Unavailable);
  store_.failing = false;
  auto reads = start_all(1, 1, 5);  // the leases were given back
  EXPECT_EQ(*reads[0].get(), "one");
  EXPECT_FALSE(node(0).find(1));
}

TEST_F(ReadThroughBatch, AnAbsenceThatMayBeAboutToEndIsNotKeptByABatchEither) {
  auto given = bulk_options();
  given.membership = [](const int& key) -> asio::awaitable<Membership> {
    co_return key == 9 ? Membership::fresh : Membership::unknown;
  };
  make(given, 1);
  for (auto& read : start_all(0, 8, 9)) EXPECT_FALSE(read.get());
  EXPECT_EQ(store_.bulk_loads, 1);
  EXPECT_TRUE(node(0).find(8));
  EXPECT_FALSE(node(0).find(9));
  EXPECT_TRUE(level_knows(8));
  EXPECT_FALSE(level_knows(9));
}

TEST_F(ReadThroughBatch, DamagedValuesCostNoRoundTripEach) {
  for (const char* key : {"1", "2", "3"}) level_->plant(key, "foreign");
  const auto calls = level_->calls();
  const std::vector<int> keys{1, 2, 3, 9};
  const auto found = now(node(0).get_all(keys));
  EXPECT_EQ(*found[0], "one");
  EXPECT_EQ(*found[2], "three");
  EXPECT_EQ(store_.bulk_loads, 1);
  EXPECT_EQ(level_->calls(), calls + 2);  // one look, one fill for what could be leased
  EXPECT_TRUE(level_knows(9));
  EXPECT_EQ(*get(1, 1), "one");  // the single read replaces it ...
  make(bulk_options());
  const int loads = store_.loads;
  EXPECT_EQ(*get(0, 1), "one");  // ... for all
  EXPECT_EQ(store_.loads, loads);
}

TEST_F(ReadThroughBatch, NobodyWaitsForTheLeasesToGoBack) {
  store_.hold_loads();
  store_.failing = true;
  auto reads = start_all(0, 1, 5);
  level_->set_trouble({.latency = 1s});
  store_.let_go();
  turn(io_);
  for (auto& read : reads) {
    ASSERT_TRUE(is_ready(read));
    EXPECT_THROW(read.get(), Unavailable);
  }
  for (int i = 0; i < 5; ++i) pass(1s);
  level_->set_trouble({});
  for (const char* key : {"1", "3", "5"}) EXPECT_FALSE(now(level_->peek(key)).leased);
}

TEST_F(ReadThroughBatch, NorForThoseOfAbsencesThatArentKept) {
  auto given = bulk_options();
  given.membership = [](const int&) -> asio::awaitable<Membership> { co_return Membership::fresh; };
  make(given, 1);
  store_.hold_loads();
  auto reads = start_all(0, 8, 9);
  level_->set_trouble({.latency = 1s});
  store_.let_go();
  turn(io_);
  for (auto& read : reads) {
    ASSERT_TRUE(is_ready(read));
    EXPECT_FALSE(read.get());
  }
  for (int i = 0; i < 2; ++i) pass(1s);
  level_->set_trouble({});
  EXPECT_FALSE(now(level_->peek("8")).leased);
  EXPECT_FALSE(now(level_->peek("9")).leased);
}

// get_all doesn't ask the filter, which so can't vouch.
TEST_F(ReadThroughBatch, GetAllKeepsNoAbsenceWhereThereIsAFilter) {
  auto given = bulk_options();
  given.membership = [](const int&) -> asio::awaitable<Membership> { co_return Membership::fresh; };
  make(given, 1);
  const std::vector<int> keys{1, 9};
  const auto found = now(node(0).get_all(keys));
  EXPECT_TRUE(found[0]);
  EXPECT_FALSE(found[1]);
  EXPECT_TRUE(node(0).find(1));
  EXPECT_FALSE(node(0).find(9));
  EXPECT_TRUE(level_knows(1));
  EXPECT_FALSE(level_knows(9));
}

// A key whose n-th copy from now on fails, as that of a text may.
struct FragileKey {
  explicit FragileKey(int i) : id(i) {}
  FragileKey(const FragileKey& other) : id(other.id) {
    if (until_it_fails > 0 && --until_it_fails == 0) throw std::bad_alloc();
  }
  FragileKey(FragileKey&&) noexcept = default;
  FragileKey& operator=(const FragileKey&) = default;
  FragileKey& operator=(FragileKey&&) noexcept = default;
  ~FragileKey() = default;
  bool operator==(const FragileKey& other) const { return id == other.id; }
  int id;
  static inline int until_it_fails = 0;
};
struct FragileHash {
  std::uint64_t operator()(const FragileKey& key, std::uint64_t seed) const {
    return KeyHash<int>{}(key.id, seed);
  }
};
using FragileCache = ReadThrough<FragileKey, std::string, FragileHash>;

TEST(ReadThroughLaunch, ALoadThatCantBeLaunchedLeavesNobodyWaiting) {
  asio::io_context io;
  const auto yield = [] { return asio::post(asio::use_awaitable); };
  int failed = 0;
  for (const bool bulk : {false, true}) {
    for (int copy = 1; copy <= 12; ++copy) {
      SCOPED_TRACE("copy " + std::to_string(copy) + (bulk ? ", in bulk" : ""));
      FragileCache::Options given{.name = "fragile"};
      if (bulk)
        given.bulk_load =
            [&](std::vector<FragileKey>) -> asio::awaitable<std::vector<std::pair<FragileKey, std::string>>> {
          co_await yield();
          co_return std::vector<std::pair<FragileKey, std::string>>{};
        };
      FragileCache cache(
          std::move(given),
          [&](FragileKey) -> asio::awaitable<std::optional<std::string>> {
            co_await yield();
            co_return "value";
          },
          io.get_executor());
      auto first = start_on(io.get_executor(), cache.get(FragileKey(1)));
      FragileKey::until_it_fails = copy;
      io.restart();
      for (int step = 0; step < 3; ++step) io.poll_one();  // up to the load's beginning
      FragileKey::until_it_fails = 0;
      auto second = start_on(io.get_executor(), cache.get(FragileKey(1)));
      turn(io);
      ASSERT_TRUE(is_ready(first) && is_ready(second));
      for (auto* read : {&first, &second}) {
        try {
          EXPECT_EQ(*read->get(), "value");
        } catch (const std::bad_alloc&) {
          ++failed;
        }
      }
      auto third = start_on(io.get_executor(), cache.get(FragileKey(1)));
      turn(io);
      ASSERT_TRUE(is_ready(third));
      EXPECT_EQ(*third.get(), "value");
    }
  }
  EXPECT_GT(failed, 4);
}

TEST_F(ReadThroughBatch, ManyKeysTakeTheirLeasesTogether) {
  get(1, 2);  // the level has it
  const int loads = store_.loads;
  const auto calls = level_->calls();
  const std::vector<int> keys{1, 2, 3, 9};
  const auto found = now(node(0).get_all(keys));
  EXPECT_EQ(*found[0], "one");
  EXPECT_EQ(*found[1], "two");
  EXPECT_EQ(*found[2], "three");
  EXPECT_FALSE(found[3]);
  EXPECT_EQ(level_->calls(), calls + 2);  // one look, one fill
  EXPECT_EQ(store_.bulk_loads, 1);
  EXPECT_EQ(metric("weir_cache_batched_keys_total"), 3);
  now(node(1).get_all(keys));
  EXPECT_EQ(store_.bulk_loads, 1);
  EXPECT_EQ(store_.loads, loads);
}

TEST_F(ReadThroughBatch, WhatAnotherNodeLoadsHoldsUpNobodyElse) {
  store_.hold_loads();
  auto elsewhere = start(1, 1);
  const auto held = std::exchange(store_.hold, nullptr);
  auto reads = start_all(0, 1, 3);
  EXPECT_FALSE(is_ready(reads[0]));
  ASSERT_TRUE(is_ready(reads[1]));
  EXPECT_EQ(*reads[1].get(), "two");
  EXPECT_EQ(*reads[2].get(), "three");
  held->open([] {});
  turn(io_);
  EXPECT_EQ(*reads[0].get(), "one");
  EXPECT_EQ(*elsewhere.get(), "one");
  EXPECT_EQ(store_.loads, 1);
}

TEST_F(ReadThroughBatch, AWriteElsewhereKeepsItsKeyOfTheBatchOutOfBothLevels) {
  store_.hold_loads();
  auto reads = start_all(0, 1, 3);
  store_.rows[2] = "new";
  now(node(1).invalidate_all({2}));
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*reads[1].get(), "two");
  EXPECT_FALSE(node(0).find(2));
  EXPECT_FALSE(level_knows(2));
  EXPECT_TRUE(node(0).find(1));
  EXPECT_TRUE(level_knows(1));
}

TEST_F(ReadThroughBatch, WithoutTheLevelABatchIsOneLoadInTheBulkhead) {
  auto given = bulk_options();
  given.remote.bulkhead_loads = 1;
  make(given, 1);
  level_->set_trouble({.refuses = true});
  store_.hold_loads();
  auto first = start_all(0, 1, 3), second = start_all(0, 4, 6);
  EXPECT_EQ(store_.bulk_loads, 1);
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*first[0].get(), "one");
  EXPECT_FALSE(second[0].get());
  given.remote.on_error = OnRemoteError::protect;
  make(given, 1);
  for (auto& read : start_all(0, 1, 3)) EXPECT_THROW(read.get(), Unavailable);
}

// A level of two parts, of which one doesn't answer.
class HalfAway : public MemoryRemote {
 public:
  using MemoryRemote::MemoryRemote;
  Awaitable<std::vector<Answer>> get_or_lease_many(std::vector<std::string> keys) override {
    std::vector<std::string> there;
    std::ranges::copy_if(keys, std::back_inserter(there), is_there);
    auto answers = co_await MemoryRemote::get_or_lease_many(std::move(there));
    std::vector<Answer> all;
    auto next = answers.begin();
    for (const auto& key : keys)
      all.push_back(is_there(key) ? std::move(*next++)
                                  : Answer(Away{std::make_exception_ptr(Unavailable("half of it is away"))}));
    co_return all;
  }

 private:
  static bool is_there(const std::string& key) { return std::stoi(key) % 2 == 1; }
};

TEST_F(ReadThroughBatch, APartOfTheLevelThatIsAwayIsTheFaultOfItsOwnKeys) {
  auto given = bulk_options();
  given.remote.level = level_ = std::make_shared<HalfAway>(level_options());
  make(given, 1);
  for (auto& read : start_all(0, 1, 3)) EXPECT_TRUE(read.get());
  EXPECT_EQ(store_.bulk_loads, 1);
  EXPECT_TRUE(level_knows(1) && level_knows(3));
  level_->flush();
  given.remote.on_error = OnRemoteError::protect;
  make(given, 1);
  auto reads = start_all(0, 1, 3);
  EXPECT_EQ(*reads[0].get(), "one");
  EXPECT_THROW(reads[1].get(), Unavailable);
  EXPECT_EQ(*reads[2].get(), "three");
  EXPECT_TRUE(level_knows(1) && level_knows(3));  // under the leases that it gave
}

TEST_F(ReadThroughBatch, TenThousandReadersOfOneExpiredKeyAreOneLoad) {
  get(0, 1);
  level_->flush();
  pass(1min);
  store_.hold_loads();
  const int loads = store_.loads;
  std::vector<std::future<TextCache::Found>> readers;
  readers.reserve(10'000);
  for (int i = 0; i < 10'000; ++i) readers.push_back(start_on(io_.get_executor(), node(0).get(1)));
  turn(io_);
  EXPECT_EQ(store_.loads, loads + 1);
  store_.let_go();
  turn(io_);  // all of them at the load's end, at no other's
  for (auto& reader : readers) {
    ASSERT_TRUE(is_ready(reader));
    EXPECT_EQ(*reader.get(), "one");
  }
  EXPECT_EQ(store_.loads, loads + 1);
}

TEST(ReadThroughBatchConcurrency, MissesOnManyThreadsShareLoadsAndAllAreServed) {
  SimulatedTime time;
  asio::thread_pool loads(2);
  std::atomic<int> calls{0};
  TextCache cache(
      {.name = "batch_threads",
       .load_timeout = 30s,
       .bulk_load = [&](std::vector<int> keys) -> asio::awaitable<std::vector<std::pair<int, std::string>>> {
         ++calls;
         std::vector<std::pair<int, std::string>> rows;
         for (const int key : keys) rows.emplace_back(key, std::to_string(key));
         co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
         co_return rows;
       }},
      [&](int key) -> asio::awaitable<std::optional<std::string>> {
        ++calls;
        co_return std::to_string(key);
      },
      loads.get_executor());
  std::deque<ThreadLoop> loops(4);
  std::vector<std::future<TextCache::Found>> readers;
  constexpr int kKeys = 2'000;
  for (int i = 0; i < 2 * kKeys; ++i)
    readers.push_back(
        start_on(loops[static_cast<std::size_t>(i) % loops.size()].executor(), cache.get(i % kKeys)));
  for (int i = 0; i < 2 * kKeys; ++i)
    EXPECT_EQ(*readers[static_cast<std::size_t>(i)].get(), std::to_string(i % kKeys));
  EXPECT_LE(calls, kKeys);
  loads.join();
}

}  // namespace
}  // namespace weir::cache

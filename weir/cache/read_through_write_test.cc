// What writes do to the guarded read, and reads of many keys at once.
#include <gtest/gtest.h>

#include <bit>

#include "weir/cache/read_through.h"
#include "weir/cache/read_through_fixture.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;
using Cache = TextCache;

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
  keys.reserve(25);
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

}  // namespace
}  // namespace weir::cache

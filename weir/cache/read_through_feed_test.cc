// Several nodes whose local caches are told of each other's writes.
#include <gtest/gtest.h>

#include <numeric>

#include "weir/cache/memory_drop_feed.h"
#include "weir/cache/read_through_nodes_fixture.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

struct ReadThroughFeed : ReadThroughNodes {
  void SetUp() override {
    store_.rows = {{1, "one"}, {2, "two"}, {3, "three"}};
    make_nodes(options());
  }
  void make_nodes(TextCache::Options given) {
    nodes_.clear();
    for (int i = 0; i < 3; ++i) {
      given.feed = FeedUse<int>::of(std::make_shared<MemoryDropFeed>(air_));
      nodes_.push_back(std::make_unique<TextCache>(given, store_.load(), io_.get_executor()));
    }
  }
  const std::shared_ptr<MemoryDropFeed::Air> air_ = std::make_shared<MemoryDropFeed::Air>();
};

TEST_F(ReadThroughFeed, AWriteIsSeenAtOnceWhereTheOldValueWasCached) {
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(*get(i, 1), "one");
  get(1, 2);
  {
    auto writing = now(node(0).begin_write(1));
    store_.rows[1] = "new";
    EXPECT_TRUE(now(writing.invalidate()));
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(*get(i, 1), "new") << i;
  EXPECT_TRUE(node(1).find(2));  // what nobody wrote stays
  EXPECT_EQ(metric("weir_cache_told_total", "outcome", "ok"), 1);
  EXPECT_EQ(metric("weir_cache_heard_total"), 2);
}

TEST_F(ReadThroughFeed, WithoutARemoteLevelToo) {
  auto given = options();
  given.remote = {};
  make_nodes(given);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(*get(i, 1), "one");
  store_.rows[1] = "new";
  EXPECT_TRUE(now(node(2).invalidate_all({1})));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(*get(i, 1), "new") << i;
}

TEST_F(ReadThroughFeed, WhoPublishesAheadIsNotToldOfHimself) {
  auto writing = now(node(0).begin_write(1));
  store_.rows[1] = "new";
  EXPECT_TRUE(now(writing.invalidate()));
  EXPECT_TRUE(now(writing.publish(text("new"))));
  EXPECT_TRUE(node(0).find(1));
  EXPECT_EQ(*get(1, 1), "new");
  EXPECT_EQ(store_.loads, 0);
}

TEST_F(ReadThroughFeed, ALoadThatIsUnderWayElsewhereDoesNotBringTheOldValueBack) {
  auto given = options();
  given.remote = {};
  make_nodes(given);
  store_.hold_loads();
  auto early = start(1, 1);
  store_.rows[1] = "new";
  EXPECT_TRUE(now(node(0).invalidate_all({1})));
  store_.let_go();
  turn(io_);
  early.get();  // it asked before the write: either is right
  EXPECT_FALSE(node(1).find(1));
  EXPECT_EQ(*get(1, 1), "new");
}

TEST_F(ReadThroughFeed, WhatMayHaveBeenMissedIsNotBelieved) {
  for (std::size_t i = 0; i < 3; ++i) get(i, 1);
  air_->lose();
  store_.rows[1] = "new";
  EXPECT_TRUE(now(node(0).invalidate_all({1})));  // both levels; the others don't know
  EXPECT_EQ(metric("weir_cache_told_total", "outcome", "error"), 1);
  EXPECT_EQ(**node(1).find(1), "one");
  air_->interrupt();
  EXPECT_FALSE(node(1).find(1));
  EXPECT_EQ(*get(1, 1), "new");
  EXPECT_EQ(metric("weir_cache_missed_total"), 3);
}

// The other end was never cut off, so nobody tells it that it missed something.
TEST_F(ReadThroughFeed, WhatCouldNotBeToldIsToldAgain) {
  for (std::size_t i = 0; i < 3; ++i) get(i, 1), get(i, 2), get(i, 3);
  air_->lose();
  store_.rows[1] = "new";
  now(node(0).invalidate_all({1}));
  store_.rows[2] = "newer";
  now(node(0).invalidate_all({2}));
  EXPECT_EQ(metric("weir_cache_told_total", "outcome", "error"), 1);  // the second didn't wait for a failure
  pass(5s);
  EXPECT_EQ(**node(1).find(1), "one");
  air_->mend();
  pass(2s);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_FALSE(node(i).find(1));
    EXPECT_FALSE(node(i).find(2));
    EXPECT_TRUE(node(i).find(3));
  }
  pass(10s);
  EXPECT_EQ(metric("weir_cache_heard_total"), 4);  // once each
  store_.rows[3] = "newest";
  now(node(0).invalidate_all({3}));  // and it is as before
  EXPECT_FALSE(node(1).find(3));
}

TEST_F(ReadThroughFeed, TooMuchThatCouldNotBeToldIsEverything) {
  get(1, 1);
  air_->lose();
  std::vector<int> keys(10'001);
  std::iota(keys.begin(), keys.end(), 100);
  now(node(0).invalidate_all(keys));
  EXPECT_TRUE(node(1).find(1));
  air_->mend();
  pass(2s);
  EXPECT_FALSE(node(1).find(1));
  EXPECT_EQ(metric("weir_cache_missed_total"), 2);
}

TEST_F(ReadThroughFeed, NobodyTellsAgainOnceItWasStopped) {
  get(1, 1);
  air_->lose();
  now(node(0).invalidate_all({1}));
  node(0).stop();
  air_->mend();
  pass(1min);
  EXPECT_EQ(metric("weir_cache_heard_total"), 0);
}

TEST_F(ReadThroughFeed, WithoutNewsTheTtlBoundsTheDamage) {
  get(1, 1);
  air_->lose();
  store_.rows[1] = "new";
  now(node(0).invalidate_all({1}));
  pass(59s);
  EXPECT_EQ(*get(1, 1), "one");
  pass(2s);
  EXPECT_EQ(*get(1, 1), "new");
}

// Whatever the namer throws.
TEST_F(ReadThroughFeed, AKeyWithoutANameKeepsNoOtherFromBeingTold) {
  auto given = options();
  given.remote = {};
  nodes_.clear();
  for (int i = 0; i < 2; ++i) {
    given.feed = FeedUse<int>::of(std::make_shared<MemoryDropFeed>(air_));
    given.feed.key = [](const int& key) {
      if (key == 2) throw key;
      return std::to_string(key);
    };
    given.feed.parse = [](std::string_view name) -> std::optional<int> {
      if (name == "3") throw 3;
      return name == "1" ? 1 : 2;
    };
    nodes_.push_back(std::make_unique<TextCache>(given, store_.load(), io_.get_executor()));
  }
  get(1, 1);
  get(1, 2);
  EXPECT_TRUE(now(node(0).invalidate_all({2, 3, 1})));
  EXPECT_FALSE(node(1).find(1));
  EXPECT_TRUE(node(1).find(2));
  EXPECT_EQ(metric("weir_cache_told_total", "outcome", "ok"), 2);
  EXPECT_EQ(metric("weir_cache_told_total", "outcome", "error"), 1);
}

TEST_F(ReadThroughFeed, KeysThatNobodyCanReadAreLeftAlone) {
  get(1, 1);
  MemoryDropFeed other(air_);
  now(other.tell(name(), {"", "one", "1x", "18446744073709551616", "-"}));
  EXPECT_TRUE(node(1).find(1));
  now(other.tell("another cache", {"1"}));
  EXPECT_TRUE(node(1).find(1));
  now(other.tell(name(), {"x", "1"}));
  EXPECT_FALSE(node(1).find(1));
}

TEST_F(ReadThroughFeed, ANodeThatIsGoneIsNotTold) {
  get(1, 1);
  nodes_[1].reset();
  EXPECT_TRUE(now(node(0).invalidate_all({1})));
  EXPECT_EQ(metric("weir_cache_heard_total"), 1);
}

TEST_F(ReadThroughFeed, AFeedWantsKeysThatCanBeReadAgain) {
  auto given = options();
  given.feed.feed = std::make_shared<MemoryDropFeed>(air_);
  EXPECT_THROW(TextCache(given, store_.load(), io_.get_executor()), std::invalid_argument);
}

// Hears one message in four.
class Deaf final : public DropFeed {
 public:
  explicit Deaf(std::shared_ptr<MemoryDropFeed::Air> air) : feed_(std::move(air)) {}
  boost::asio::awaitable<void> tell(std::string cache, std::vector<std::string> keys) override {
    return feed_.tell(std::move(cache), std::move(keys));
  }
  std::unique_ptr<Listening> listen(std::string cache, Listener listener) override {
    auto heard = [this, all = std::move(listener.heard)](const auto& keys) {
      if (++messages_ % 4 == 0) all(keys);
    };
    return feed_.listen(std::move(cache), {.heard = heard, .missed = std::move(listener.missed)});
  }

 private:
  MemoryDropFeed feed_;
  int messages_ = 0;
};

// Nodes that read and write a few keys in an order that a seed decides, while loads are held up and news are lost. A
// read that begins after a write was told to everybody (or after what was missed was made good) never gets an older
// value. The values are numbers that grow.
struct ReadThroughFeedModel : ReadThroughFeed {
  static constexpr int kKeys = 3;
  struct Read {
    std::future<TextCache::Found> answer;
    int least;
  };

  int run(std::uint64_t seed, bool remote, bool deaf) {
    Random random(seed);
    const auto node_of = [&] { return static_cast<std::size_t>(random.below(3)); };
    const auto key_of = [&] { return 1 + static_cast<int>(random.below(kKeys)); };
    begin(remote, deaf);
    for (int step = 0; step < 120; ++step) {
      switch (random.below(8)) {
        case 0:
          lost_ ? mend() : lose(random.below(3) == 0);
          break;
        case 1:
          store_.hold ? store_.let_go() : store_.hold_loads();
          break;
        case 2:
        case 3:
          write(node_of(), key_of(), random.below(2) == 0);
          break;
        default:
          read(node_of(), key_of());
      }
      turn(io_);
      check();
    }
    if (store_.hold) store_.let_go();
    turn(io_);
    check();
    nodes_.clear();
    turn(io_);
    return faults_;
  }

  void begin(bool remote, bool deaf) {
    auto given = options();
    if (remote) {
      level_ = std::make_shared<MemoryRemote>(level_options());
      given.remote.level = level_;
    } else {
      given.remote = {};
    }
    nodes_.clear();
    for (int i = 0; i < 3; ++i) {
      given.feed = deaf ? FeedUse<int>::of(std::make_shared<Deaf>(air_))
                        : FeedUse<int>::of(std::make_shared<MemoryDropFeed>(air_));
      nodes_.push_back(std::make_unique<TextCache>(given, store_.load(), io_.get_executor()));
    }
    for (int key = 1; key <= kKeys; ++key) store_.rows[key] = std::to_string(++latest_), told_[key] = latest_;
  }
  void lose(bool really) {
    if (!really) return;
    air_->lose();
    lost_ = true;
  }
  void mend() {
    air_->mend();
    pass(2s);  // what could not be told is told now
    lost_ = false;
    for (int key = 1; key <= kKeys; ++key) told_[key] = std::stoi(store_.rows[key]);
  }
  void write(std::size_t i, int key, bool publish) {
    const std::string value = std::to_string(++latest_);
    if (publish) {
      auto writing = now(node(i).begin_write(key));
      store_.rows[key] = value;
      now(writing.invalidate());
      now(writing.publish(text(value)));
    } else {
      store_.rows[key] = value;
      now(node(i).invalidate_all({key}));
    }
    if (!lost_) told_[key] = latest_;
  }
  void read(std::size_t i, int key) {
    if (const auto known = node(i).find(key)) {
      faults_ += std::stoi(**known) < told_[key];
      return;
    }
    reads_.push_back({start(i, key), told_[key]});
  }
  void check() {
    std::erase_if(reads_, [&](Read& read) {
      if (!is_ready(read.answer)) return false;
      faults_ += std::stoi(*read.answer.get()) < read.least;
      return true;
    });
  }

  std::vector<Read> reads_;
  std::map<int, int> told_;
  int latest_ = 0, faults_ = 0;
  bool lost_ = false;
};

TEST_F(ReadThroughFeedModel, WhatWasToldIsNeverUnsaid) {
  const std::uint64_t first = secure_random64();
  for (std::uint64_t i = 0; i < 400; ++i) {
    SCOPED_TRACE(first + i);
    ASSERT_EQ(run(first + i, i % 2 == 0, false), 0);
  }
}

TEST_F(ReadThroughFeedModel, AnEarThatIsDeafIsCaught) {
  const std::uint64_t first = secure_random64();
  for (const bool remote : {false, true}) {
    int faults = 0;
    for (std::uint64_t i = 0; i < 20; ++i) faults += run(first + i, remote, true);
    EXPECT_GT(faults, 0) << first;
  }
}

TEST(KeyText, IsReadAgain) {
  for (const std::int64_t key : {std::int64_t{0}, std::int64_t{-7}, std::numeric_limits<std::int64_t>::max()})
    EXPECT_EQ(key_of_text<std::int64_t>(key_text(key)), key);
  EXPECT_EQ(key_of_text<std::string>(key_text(std::string("a:b\0c", 5))), std::string("a:b\0c", 5));
  EXPECT_EQ(key_of_text<std::int64_t>("7 "), std::nullopt);
  EXPECT_EQ(key_of_text<std::int64_t>(""), std::nullopt);
  EXPECT_EQ(key_of_text<std::uint8_t>("256"), std::nullopt);
}

}  // namespace
}  // namespace weir::cache

#include "weir/cache/cache_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "weir/base/random.h"

namespace weir::cache {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Cache = LocalCache<std::string, std::string>;
using Codec = PlainCodec<std::string, std::string>;

std::shared_ptr<const std::string> text(std::string t) {
  return std::make_shared<const std::string>(std::move(t));
}

class CacheFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "weir-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    file_ = folder_ / "saved.cache";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  LocalCacheOptions options() { return {.capacity = 4 << 20, .clock = &clock_}; }

  std::string bytes() {
    std::ifstream in(file_, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
  }
  void write(const std::string& bytes) { std::ofstream(file_, std::ios::binary) << bytes; }
  Loaded load(Cache& cache) { return load_cache(cache, file_, Codec{}, clock_); }

  ManualClock clock_;
  std::filesystem::path folder_, file_;
};

TEST_F(CacheFileTest, ARestartBeginsWarm) {
  Cache before(options());
  for (int i = 0; i < 5'000; ++i) {
    std::string key("key ");
    key += std::to_string(i);
    before.put(key, text(std::string(static_cast<std::size_t>(i % 100), 'x')), 100);
  }
  before.put("absent", nullptr, 0);
  EXPECT_EQ(save_cache(before, file_, Codec{}, clock_), before.size());

  Cache after(options());
  const Loaded loaded = load(after);
  EXPECT_TRUE(loaded.whole);
  EXPECT_EQ(loaded.entries, before.size());
  EXPECT_EQ(after.weight(), before.weight());
  EXPECT_TRUE(after.look("absent").known);
  EXPECT_EQ(after.find("absent"), nullptr);
  std::size_t same = 0;
  before.for_each([&](const std::string& key, const auto& value, const EntryInfo&) {
    const auto found = after.find(key);
    same += value == nullptr ? found == nullptr : found && *found == *value;
  });
  EXPECT_EQ(same, before.size());
}

TEST_F(CacheFileTest, TtlsGoOnWhileTheFileLiesThere) {
  Cache before(options());
  before.put("short", text("1"), 1, minutes(5));
  before.put("long", text("2"), 1, minutes(20), minutes(12));
  before.put("for ever", text("3"), 1);
  save_cache(before, file_, Codec{}, clock_);
  clock_.advance(minutes(10));
  Cache after(options());
  const Loaded loaded = load(after);
  EXPECT_EQ(loaded.entries, 2U);
  EXPECT_EQ(loaded.expired, 1U);
  EXPECT_FALSE(after.look("long").stale);
  clock_.advance(minutes(2));
  EXPECT_TRUE(after.look("long").stale);
  clock_.advance(minutes(8));
  EXPECT_FALSE(after.find("long"));
  EXPECT_TRUE(after.find("for ever"));
}

TEST_F(CacheFileTest, AClockThatWentBackVouchesForNoTtl) {
  ManualClock later(WallTime(seconds(1'800'000'000)));
  Cache before(options());
  before.put("timed", text("1"), 1, minutes(5));
  before.put("for ever", text("2"), 1);
  save_cache(before, file_, Codec{}, later);
  Cache after(options());
  const Loaded loaded = load(after);
  EXPECT_EQ(loaded.entries, 1U);
  EXPECT_EQ(loaded.expired, 1U);
  EXPECT_TRUE(after.find("for ever"));
}

TEST_F(CacheFileTest, ValuesInPlaceToo) {
  FlatCache<std::uint32_t, int> before({.capacity = 1'000, .bound = Bound::weights});
  for (std::uint32_t key = 0; key < 900; ++key) before.put(key, -static_cast<int>(key));
  save_cache(before, file_, PlainCodec<std::uint32_t, int>{});
  FlatCache<std::uint32_t, int> after({.capacity = 1'000, .bound = Bound::weights});
  EXPECT_EQ(load_cache(after, file_, PlainCodec<std::uint32_t, int>{}).entries, 900U);
  for (std::uint32_t key = 0; key < 900; ++key) ASSERT_EQ(after.find(key), -static_cast<int>(key));
  FlatCache<std::uint32_t, int> smaller({.capacity = 100, .bound = Bound::weights});
  load_cache(smaller, file_, PlainCodec<std::uint32_t, int>{});
  EXPECT_EQ(smaller.size(), 100U) << "its own bound holds";
}

struct OtherCodec : Codec {
  std::uint64_t format() const { return 7; }
};
struct PickyCodec : Codec {
  std::string decode_key(std::string_view bytes) const {
    if (bytes == "b") throw Unusable("no such key");
    if (bytes == "c") throw 7;
    return std::string(bytes);
  }
};

TEST_F(CacheFileTest, RefusesWhatItIsNot) {
  Cache cache(options());
  EXPECT_THROW(load(cache), Unavailable) << "no file";
  write("something else, long enough to be a header, or so it seems");
  EXPECT_THROW(load(cache), Unusable);
  write("");
  EXPECT_THROW(load(cache), Unusable);
  cache.put("a", text("1"), 1);
  cache.put("b", text("2"), 1);
  cache.put("c", text("3"), 1);
  save_cache(cache, file_, Codec{}, clock_);
  EXPECT_THROW(load_cache(cache, file_, OtherCodec{}, clock_), Unusable);
  Cache after(options());
  const Loaded loaded = load_cache(after, file_, PickyCodec{}, clock_);
  EXPECT_EQ(loaded.left_out, 2U);
  EXPECT_TRUE(after.find("a"));
  EXPECT_TRUE(loaded.whole);
}

// Cut off or turned at any place, the file gives nothing that wasn't saved.
TEST_F(CacheFileTest, DamageIsNeverBelieved) {
  Cache before(options());
  std::map<std::string, std::string> saved;
  for (int i = 0; i < 40; ++i) {
    std::string key("key ");
    key += std::to_string(i);
    saved[key] = std::string(static_cast<std::size_t>(i) * 200, static_cast<char>('a' + i % 26));
    before.put(key, text(saved[key]), 1);
  }
  save_cache(before, file_, Codec{}, clock_);
  const std::string whole = bytes();
  ASSERT_GT(whole.size(), std::size_t{100} << 10) << "several blocks";
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  std::uint64_t most = 0;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = whole;
    const std::size_t at = round < 100 ? static_cast<std::size_t>(round) : random.below(whole.size());
    if (round % 2 == 0) {
      damaged.resize(at);
    } else {
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    }
    write(damaged);
    Cache after(options());
    try {
      const Loaded loaded = load(after);
      ASSERT_FALSE(loaded.whole) << at;
      most = std::max(most, loaded.entries);
    } catch (const Unusable&) {
      ASSERT_LT(at, 40U) << "only a damaged header refuses all";
    }
    after.for_each([&](const std::string& key, const auto& value, const EntryInfo&) {
      ASSERT_TRUE(saved.contains(key));
      ASSERT_EQ(saved[key], *value);
    });
  }
  EXPECT_GT(most, 10U) << "what stands before the damage is used";
  write(whole + "x");
  Cache after(options());
  EXPECT_FALSE(load(after).whole);
}

TEST_F(CacheFileTest, AFailedSaveLeavesTheOldFile) {
  Cache cache(options());
  cache.put("a", text("1"), 1);
  save_cache(cache, file_, Codec{}, clock_);
  struct Broken : Codec {
    std::string encode_value(const std::string&) const { throw Unavailable("no"); }
  };
  EXPECT_THROW(save_cache(cache, file_, Broken{}, clock_), Unavailable);
  Cache after(options());
  EXPECT_EQ(load(after).entries, 1U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "and nothing beside it";
}

}  // namespace
}  // namespace weir::cache

#include "weir/cache/lease_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/random.h"

namespace weir::cache {
namespace {

using Table = LeaseTable<std::string>;

bool good(Table& table, const std::string& key, const Table::Lease& lease) {
  return table.use(key, lease, [] { return true; });
}
void cancel(Table& table, const std::string& key) {
  table.cancel(key, [] {});
}

TEST(LeaseTable, AWriteTakesLeasesAway) {
  Table table(1);
  const auto lease = table.take("a"), other = table.take("b");
  EXPECT_TRUE(good(table, "a", lease));
  EXPECT_TRUE(good(table, "a", lease));  // using it doesn't use it up
  cancel(table, "a");
  EXPECT_FALSE(good(table, "a", lease));
  EXPECT_TRUE(good(table, "b", other));
  EXPECT_TRUE(good(table, "a", table.take("a")));
}

TEST(LeaseTable, ALeaseIsForItsKeyAlone) {
  Table table(1);
  const auto lease = table.take("a");
  const auto keep = table.take("b");
  EXPECT_FALSE(good(table, "b", lease));
  EXPECT_FALSE(good(table, "a", Table::Lease()));
}

TEST(LeaseTable, TheOwnersInvalidationSparesItsOwnLeaseUnlessItWasLost) {
  Table table(1);
  auto first = table.take("a"), second = table.take("a");
  table.cancel_others("a", first, [] {});
  EXPECT_TRUE(good(table, "a", first));
  EXPECT_FALSE(good(table, "a", second));
  table.cancel_others("a", second, [] {});  // must not bring it back to life
  EXPECT_FALSE(good(table, "a", second));
  EXPECT_FALSE(good(table, "a", first));
}

TEST(LeaseTable, RemembersNothingOfWhatCameBack) {
  Table table(1);
  {
    auto lease = table.take("a");
    auto again = table.take("a");
    EXPECT_EQ(table.size(), 1U);
    lease = std::move(again);
    EXPECT_EQ(table.size(), 1U);
    EXPECT_FALSE(good(table, "a", again));  // NOLINT(bugprone-use-after-move): it is what is tested
  }
  EXPECT_EQ(table.size(), 0U);
  cancel(table, "a");
  EXPECT_EQ(table.size(), 0U);
}

TEST(LeaseTable, ALeaseMayOutliveItsTable) {
  std::optional<Table::Lease> lease;
  {
    Table table(1);
    lease = table.take("a");
  }
  lease.reset();
}

TEST(LeaseTable, AllCanBeCancelled) {
  Table table(1);
  std::vector<Table::Lease> leases;
  leases.reserve(100);
  for (int i = 0; i < 100; ++i) leases.push_back(table.take(std::to_string(i)));
  table.cancel_all([] {});
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(good(table, std::to_string(i), leases[static_cast<std::size_t>(i)]));
}

// Readers load "from the store" under leases, writers write it and invalidate: at every moment between writes
// the cache holds nothing or the store's value.
TEST(LeaseTable, RandomInterleavingsNeverFillAStaleValue) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  struct Reader {
    Table::Lease lease;
    int read;
  };
  Table table(seed);
  int store = 0;
  bool dirty = false;  // written, not yet invalidated
  std::optional<int> cached;
  std::vector<Reader> readers;
  int fills = 0;
  for (int step = 0; step < 20'000; ++step) {
    switch (random.below(4)) {
      case 0: {
        auto lease = table.take("k");
        readers.push_back({std::move(lease), store});
        break;
      }
      case 1:
        if (!readers.empty()) {
          std::swap(readers[random.below(readers.size())], readers.back());
          const Reader& reader = readers.back();
          fills += table.use("k", reader.lease, [&] {
            cached = reader.read;
            return true;
          });
          readers.pop_back();
        }
        break;
      case 2:
        if (random.chance(0.3)) {
          ++store;
          dirty = true;
        }
        break;
      default:
        if (dirty) table.cancel("k", [&] { cached.reset(); });
        dirty = false;
    }
    if (!dirty && cached) {
      ASSERT_EQ(*cached, store) << step;
    }
  }
  EXPECT_GT(fills, 100);
}

TEST(LeaseTableConcurrency, ManyThreadsKeepItWhole) {
  Table table(7);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&table, t] {
      Random random(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 20'000; ++i) {
        const std::string key = std::to_string(random.below(8));
        if (random.chance(0.3)) {
          cancel(table, key);
        } else {
          auto lease = table.take(key);
          good(table, key, lease);
          if (random.chance(0.2)) table.cancel_others(key, lease, [] {});
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(table.size(), 0U);
}

}  // namespace
}  // namespace weir::cache

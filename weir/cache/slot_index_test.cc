#include "weir/cache/slot_index.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "weir/base/random.h"
#include "weir/cache/slab.h"

namespace weir::cache::detail {
namespace {

// Random inserts and erases against a map, through many growths; the hashes collide on purpose.
template <bool kKeep>
void run_index(std::uint64_t seed) {
  SCOPED_TRACE(seed);
  Random random(seed);
  SlotIndex<kKeep> index;
  std::map<std::uint32_t, std::uint32_t> model;  // number to hash
  std::vector<std::uint32_t> free;
  std::uint32_t last = 0;
  const auto hash_of = [&](std::uint32_t id) { return model.at(id); };
  for (int step = 0; step < 20'000; ++step) {
    const bool grow_phase = step % 6000 < 4000;
    if (model.empty() || random.chance(grow_phase ? 0.7 : 0.3)) {
      std::uint32_t id = ++last;
      if (!free.empty()) {
        --last;
        id = free.back();
        free.pop_back();
      }
      if (index.full(model.size())) {
        auto table = index.table_for(index.next_entries(5000));
        index.reserve();
        index.grow(std::move(table), hash_of);
      }
      const auto hash =
          static_cast<std::uint32_t>(random.below(4) == 0 ? random.below(8) << 29 : random.next());
      model[id] = hash;
      index.insert(hash, id, hash_of);
    } else {
      auto at = model.lower_bound(static_cast<std::uint32_t>(random.below(last)));
      if (at == model.end()) at = model.begin();
      index.erase(at->second, at->first, hash_of);
      free.push_back(at->first);
      const std::uint32_t gone = at->first, hash = at->second;
      model.erase(at);
      ASSERT_EQ(index.find(hash, [&](std::uint32_t id) { return id == gone; }), 0U);
    }
    if (step % 500 != 0) continue;
    for (const auto& [id, hash] : model)
      ASSERT_EQ(index.find(hash, [&, want = id](std::uint32_t found) { return found == want; }), id) << step;
  }
}

TEST(SlotIndex, AgreesWithAMap) {
  for (int round = 0; round < 5; ++round) {
    run_index<true>(secure_random64());
    run_index<false>(secure_random64());
  }
}

TEST(SlotIndex, NeverGrowsBeyondWhatCanBeThere) {
  SlotIndex<true> index;
  std::vector<std::uint32_t> hashes{0};
  Random random(1);
  const auto hash_of = [&](std::uint32_t id) { return hashes[id]; };
  for (std::uint32_t id = 1; id <= 10'000; ++id) {
    if (index.full(id - 1)) {
      auto table = index.table_for(index.next_entries(10'000));
      index.reserve();
      index.grow(std::move(table), hash_of);
    }
    hashes.push_back(static_cast<std::uint32_t>(random.next()));
    index.insert(hashes.back(), id, hash_of);
  }
  // Four bytes at a load of three quarters, and the outgrown ones.
  EXPECT_LT(index.memory_bytes(), 10'000U * 4 * 4 / 3 * 4 / 3 + 100);
}

struct Thing {
  std::uint32_t next;
  std::uint32_t next_free() const { return next; }
  void set_next_free(std::uint32_t id) { next = id; }
};
struct More {
  std::uint64_t what;
};

TEST(Slab, GivesEachNumberItsOwnPlace) {
  Slab<Thing, More> slab;
  EXPECT_EQ(slab.entry(1), nullptr);
  std::map<Thing*, std::uint32_t> places;
  for (std::uint32_t id = 1; id <= 10'000; ++id) {
    ASSERT_EQ(slab.take(), id);
    ASSERT_TRUE(places.emplace(slab.entry(id), id).second);
  }
  EXPECT_EQ(slab.extra(5000), nullptr);
  slab.want_extra(5000).what = 7;
  EXPECT_EQ(slab.extra(5000)->what, 7U);
  EXPECT_EQ(slab.extra(4999)->what, 0U);
  EXPECT_EQ(slab.extra(1), nullptr);
  slab.give_back(17);
  slab.give_back(9000);
  EXPECT_EQ(slab.take(), 9000U);
  EXPECT_EQ(slab.take(), 17U);
  EXPECT_EQ(slab.take(), 10'001U);
}

}  // namespace
}  // namespace weir::cache::detail

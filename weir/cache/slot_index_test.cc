#include "weir/cache/slot_index.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <vector>

#include "weir/base/random.h"
#include "weir/cache/slab.h"

namespace weir::cache::detail {
namespace {

// Random inserts and erases against a map, through many growths; the hashes collide on purpose.
void run_index(std::uint64_t seed, std::size_t growth) {
  SCOPED_TRACE(seed);
  Random random(seed);
  SlotIndex index;
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
        auto table = index.table_for(index.next_entries(5000, growth));
        index.reserve();
        index.grow(std::move(table), hash_of);
      }
      const auto hash =
          static_cast<std::uint32_t>(random.below(4) == 0 ? random.below(8) << 29 : random.next());
      model[id] = hash;
      index.step(hash_of);
      index.insert(hash, id);
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
    run_index(secure_random64(), 4);
    run_index(secure_random64(), 2);
  }
}

TEST(SlotIndex, NeverGrowsBeyondWhatCanBeThere) {
  SlotIndex index;
  std::vector<std::uint32_t> hashes{0};
  Random random(1);
  const auto hash_of = [&](std::uint32_t id) { return hashes[id]; };
  for (std::uint32_t id = 1; id <= 10'000; ++id) {
    if (index.full(id - 1)) {
      auto table = index.table_for(index.next_entries(10'000, 4));
      index.reserve();
      index.grow(std::move(table), hash_of);
    }
    hashes.push_back(static_cast<std::uint32_t>(random.next()));
    index.step(hash_of);
    index.insert(hashes.back(), id);
  }
  // Four bytes at a load of three quarters, and the outgrown ones.
  EXPECT_LT(index.memory_bytes(), 10'000U * 4 * 4 / 3 * 4 / 3 + 500);
}

struct Thing {
  std::uint64_t key, value;
};
struct Linked {
  std::uint32_t next, previous;
};
struct More {
  std::uint64_t what;
};

TEST(PlaceGroup, ComparesEightAtOnce) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 10'000; ++round) {
    std::array<std::atomic<std::uint32_t>, kPlacesCompared> places;
    for (auto& place : places)
      place = random.below(8) == 0 ? 0 : static_cast<std::uint32_t>(random.below(3) << 24 | random.below(3));
    const auto bits = static_cast<std::uint32_t>(random.below(3) << 24);
    const PlaceGroup group(places.data());
    const unsigned same = group.same(bits, 0xff000000);
    bool free = false;
    for (unsigned i = 0; i < kPlacesCompared; ++i) {
      ASSERT_EQ(same >> i & 1, static_cast<unsigned>((places[i] & 0xff000000) == bits));
      free = free || places[i] == 0;
    }
    ASSERT_EQ(same >> kPlacesCompared, 0U);
    ASSERT_EQ(group.has_free(), free);
  }
}

TEST(Slab, GivesEachNumberItsOwnPlace) {
  Slab<Thing, Linked, More> slab;
  slab.set_most(9'000);
  EXPECT_FALSE(slab.at(1));
  std::set<const void*> places;
  for (std::uint32_t id = 1; id <= 10'000; ++id) {
    if (id == 8'000) slab.set_most(10'001);
    ASSERT_EQ(slab.take(), id);
    const auto place = slab.at(id);
    ASSERT_TRUE(places.insert(&place.pair()).second && places.insert(&place.links()).second &&
                places.insert(&place.mark()).second);
    place.pair() = {id, ~id};
    place.links() = {id, ~id};
    place.mark() = static_cast<std::uint8_t>(id);
  }
  for (std::uint32_t id = 1; id <= 10'000; ++id) {
    ASSERT_EQ(slab.at(id).pair().key, id);
    ASSERT_EQ(slab.at(id).links().next, id);
    ASSERT_EQ(slab.at(id).mark(), static_cast<std::uint8_t>(id));
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

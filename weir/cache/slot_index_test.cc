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
      index.erase(at->second, at->first);
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
  // A line for twelve at a load of thirteen sixteenths, and the outgrown ones.
  EXPECT_LT(index.memory_bytes(), 10'000U * 64 / 12 * 16 / 13 * 4 / 3 + 1000);
}

struct Thing {
  std::uint64_t key = 0, value = 0;
};
struct Linked {
  std::uint32_t next, previous;
};
struct More {
  std::uint64_t what;
};

TEST(SlotBucket, ComparesAllTagsAtOnce) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 10'000; ++round) {
    SlotBucket bucket{};
    bucket.pass(static_cast<std::uint32_t>(random.below(3) * 0x01010101));  // looks like tags, and is none
    std::array<std::uint8_t, SlotBucket::kSlots> tags{};
    for (unsigned slot = 0; slot < SlotBucket::kSlots; ++slot) {
      tags[slot] = static_cast<std::uint8_t>(random.below(3));
      if (tags[slot] != SlotBucket::kFree) bucket.put(slot, tags[slot], slot + 1);
    }
    const auto wanted = static_cast<std::uint8_t>(random.below(3));
    const unsigned same = bucket.with_tag(wanted);
    for (unsigned slot = 0; slot < SlotBucket::kSlots; ++slot)
      ASSERT_EQ(same >> slot & 1, static_cast<unsigned>(tags[slot] == wanted));
    ASSERT_EQ(same >> SlotBucket::kSlots, 0U);
  }
}

// What went past a full bucket and left again must not make every later search walk on.
TEST(SlotBucket, SearchesEndWhereNobodyWentPast) {
  SlotIndex index;
  std::vector<std::uint32_t> hashes{0};
  const auto hash_of = [&](std::uint32_t id) { return hashes[id]; };
  index.reserve();
  index.grow(SlotIndex::table_for(100), hash_of);
  for (std::uint32_t id = 1; id <= 30; ++id) {  // all of one bucket
    hashes.push_back(id);
    index.insert(id, id);
  }
  for (std::uint32_t id = 1; id <= 30; ++id)
    EXPECT_EQ(index.find(id, [&](std::uint32_t found) { return found == id; }), id);
  for (std::uint32_t id = 30; id > 12; --id) index.erase(id, id);
  int looked = 0;
  const std::uint32_t wanted = 5;
  EXPECT_EQ(index.find(wanted,
                       [&](std::uint32_t) {
                         ++looked;
                         return false;
                       }),
            0U);
  EXPECT_EQ(looked, 1);
}

TEST(Slab, GivesEachNumberItsOwnPlace) {
  Slab<Thing, Linked, More> slab;
  slab.set_most(9'000);
  std::set<const void*> places;
  std::vector<std::uint32_t> ids{0};
  for (std::uint32_t n = 1; n <= 10'000; ++n) {
    if (n == 8'000) slab.set_most(10'001);
    const std::uint32_t id = slab.take();
    ids.push_back(id);
    ASSERT_EQ(slab.taken(), n);
    ASSERT_EQ(slab.nth(n), id);
    ASSERT_NE(id, 0U);
    const auto place = slab.at(id);
    ASSERT_TRUE(places.insert(&place.pair()).second && places.insert(&slab.links(id)).second &&
                places.insert(&place.mark()).second);
    place.pair() = {n, ~n};
    slab.links(id) = {n, ~n};
    place.mark() = static_cast<std::uint8_t>(n);
  }
  for (std::uint32_t n = 1; n <= 10'000; ++n) {
    ASSERT_EQ(slab.pair(ids[n]).key, n);
    ASSERT_EQ(slab.links(ids[n]).next, n);
    ASSERT_EQ(slab.mark(ids[n]), static_cast<std::uint8_t>(n));
  }
  EXPECT_TRUE(slab.all_ordinary());
  EXPECT_EQ(slab.extra(ids[5000]), nullptr);
  slab.want_extra(ids[5000]).what = 7;
  EXPECT_FALSE(slab.all_ordinary());
  EXPECT_EQ(slab.extra(ids[5000])->what, 7U);
  EXPECT_EQ(slab.extra(ids[4999])->what, 0U);
  EXPECT_EQ(slab.extra(ids[1]), nullptr);
  slab.give_back(ids[17]);
  slab.give_back(ids[9000]);
  EXPECT_EQ(slab.take(), ids[9000]);
  EXPECT_EQ(slab.take(), ids[17]);
  EXPECT_EQ(slab.taken(), 10'000U);
  EXPECT_EQ(slab.take(), slab.nth(10'001));
}

}  // namespace
}  // namespace weir::cache::detail

// Folders and what is in them, through the service over a real store.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "site/interaction/interaction_fixture.h"
#include "weir/testing/metrics.h"

namespace weir::site::interaction {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<Id>;

class Collections : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, Collections, sql::each_store(), sql::name_of_store);
class CollectionsConcurrency : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, CollectionsConcurrency, sql::each_store(), sql::name_of_store);

TEST_P(Collections, EverybodyHasADefaultFolder) {
  Module m(*test_store);
  const auto folders = m.folders(1);
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_TRUE(folders[0].is_default);
  EXPECT_EQ(folders[0].item_count, 0);
  EXPECT_EQ(m.folders(1)[0].id, folders[0].id) << "and it stays the same one";
  EXPECT_NE(m.folders(2)[0].id, folders[0].id);
}

TEST_P(Collections, CollectingGoesToTheDefaultFolderOnce) {
  Module m(*test_store);
  EXPECT_EQ(m.collect(1, 7), Outcome::done);
  EXPECT_EQ(m.collect(1, 7), Outcome::done);
  EXPECT_EQ(m.counts(7).collects, 1);
  EXPECT_TRUE(m.mine(1, 7).collected);
  EXPECT_FALSE(m.mine(2, 7).collected);
  const auto folder = m.folders(1)[0];
  EXPECT_EQ(folder.item_count, 1);
  EXPECT_EQ(m.items(1, folder.id), Ids({7}));
  EXPECT_EQ(m.uncollect(1, 7), Outcome::done);
  EXPECT_EQ(m.uncollect(1, 7), Outcome::done);
  EXPECT_EQ(m.counts(7).collects, 0);
  EXPECT_EQ(m.folders(1)[0].item_count, 0);
  EXPECT_TRUE(m.items(1, folder.id).empty());
}

TEST_P(Collections, AThingIsInOneFolderAndMoves) {
  Module m(*test_store);
  m.collect(1, 7);
  const auto trips = m.io.run(m.service.create_folder(1, "trips")).value();
  EXPECT_EQ(m.collect(1, 7, trips.id), Outcome::done);
  EXPECT_EQ(m.counts(7).collects, 1) << "moving isn't collecting again";
  EXPECT_EQ(m.folders(1)[0].item_count, 0);
  EXPECT_EQ(m.folders(1)[1].item_count, 1);
  EXPECT_EQ(m.items(1, trips.id), Ids({7}));
  m.collect(1, 7);
  EXPECT_EQ(m.items(1, trips.id), Ids({7})) << "without a folder it stays where it is";
  EXPECT_EQ(m.uncollect(1, 7, m.folders(1)[0].id), Outcome::done);
  EXPECT_TRUE(m.mine(1, 7).collected) << "it wasn't in that folder";
  EXPECT_EQ(m.uncollect(1, 7, trips.id), Outcome::done);
  EXPECT_FALSE(m.mine(1, 7).collected);
}

TEST_P(Collections, SomebodyElsesFolderIsntThere) {
  Module m(*test_store);
  const auto hers = m.io.run(m.service.create_folder(2, "hers")).value();
  EXPECT_EQ(m.collect(1, 7, hers.id), Outcome::not_found);
  EXPECT_EQ(m.uncollect(1, 7, hers.id), Outcome::not_found);
  EXPECT_EQ(m.counts(7).collects, 0);
  EXPECT_FALSE(m.io.run(m.service.rename_folder(1, hers.id, "mine")));
  EXPECT_FALSE(m.io.run(m.service.items(1, hers.id, {})));
  EXPECT_EQ(m.io.run(m.service.remove_folder(1, hers.id)), Outcome::not_found);
  EXPECT_EQ(m.folders(2)[1].name, "hers");
}

TEST_P(Collections, WhatADeletedFolderHeldMovesToTheDefaultOne) {
  Module m(*test_store);
  const auto trips = m.io.run(m.service.create_folder(1, "trips")).value();
  m.collect(1, 5);
  m.clock.advance(1s);
  m.collect(1, 6, trips.id);
  m.clock.advance(1s);
  m.collect(1, 7, trips.id);
  EXPECT_EQ(m.io.run(m.service.remove_folder(1, trips.id)), Outcome::done);
  const auto folders = m.folders(1);
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_EQ(folders[0].item_count, 3);
  EXPECT_EQ(m.items(1, folders[0].id), Ids({7, 6, 5}));
  EXPECT_EQ(m.counts(7).collects, 1);
  EXPECT_EQ(m.io.run(m.service.remove_folder(1, trips.id)), Outcome::not_found);
  EXPECT_EQ(m.io.run(m.service.remove_folder(1, folders[0].id)), Outcome::is_default);
}

TEST_P(Collections, ALargeFolderIsMovedInSteps) {
  Module m(*test_store);
  const auto big = m.io.run(m.service.create_folder(1, "big")).value();
  const auto count = 2 * CollectionStore::kMovedAtOnce + 1;
  for (Id article = 1; article <= count; ++article) m.collect(1, article, big.id);
  const double steps = statements("interaction", "move_collected");
  EXPECT_EQ(m.io.run(m.service.remove_folder(1, big.id)), Outcome::done);
  EXPECT_EQ(statements("interaction", "move_collected") - steps, 3);
  EXPECT_EQ(m.folders(1)[0].item_count, count);
}

TEST_P(Collections, FoldersAreRenamed) {
  Module m(*test_store);
  const auto folder = m.folders(1)[0];
  EXPECT_EQ(m.io.run(m.service.rename_folder(1, folder.id, "稍后读")).value().name, "稍后读");
  EXPECT_TRUE(m.folders(1)[0].is_default);
  EXPECT_EQ(m.folders(1)[0].name, "稍后读");
}

TEST_P(Collections, FoldersHaveALimit) {
  Module m(*test_store);
  m.folders(1);
  for (std::size_t i = 1; i < kMaxFolders; ++i) ASSERT_TRUE(m.io.run(m.service.create_folder(1, "one more")));
  EXPECT_FALSE(m.io.run(m.service.create_folder(1, "too many")));
  EXPECT_TRUE(m.io.run(m.service.create_folder(2, "somebody else's")));
}

TEST_P(Collections, ListsComeInAllForms) {
  Module m(*test_store);
  m.folders(1);
  std::vector<Id> folders{m.folders(1)[0].id};
  for (int i = 0; i < 4; ++i) folders.push_back(m.io.run(m.service.create_folder(1, "f")).value().id);
  FolderSlice some;
  some.limit = 2;
  some.offset = 2;
  some.with_total = true;
  const auto page = m.io.run(m.service.folders(1, some));
  EXPECT_EQ(page.total, 5);
  EXPECT_TRUE(page.more);
  ASSERT_EQ(page.items.size(), 2U);
  EXPECT_EQ(page.items[0].id, folders[2]);
  some = {.limit = 2, .after = folders[3]};
  const auto rest = m.io.run(m.service.folders(1, some));
  EXPECT_FALSE(rest.more);
  EXPECT_FALSE(rest.total);
  ASSERT_EQ(rest.items.size(), 1U);
  EXPECT_EQ(rest.items[0].id, folders[4]);
}

TEST_P(Collections, AWalkByCursorNeitherSkipsNorRepeats) {
  Module m(*test_store);
  const Id folder = m.folders(1)[0].id;
  // Several at the same moment: then the row decides.
  for (Id article = 1; article <= 25; ++article) {
    m.collect(1, article);
    if (article % 4 == 0) m.clock.advance(1s);
  }
  std::vector<Id> walked;
  EntrySlice slice{.limit = 7};
  for (;;) {
    const auto listing = m.io.run(m.service.items(1, folder, slice)).value();
    for (const auto& item : listing.items) {
      walked.push_back(item.entry.subject.id);
      EXPECT_EQ(item.title, "title " + std::to_string(item.entry.subject.id));
    }
    if (!listing.more) break;
    slice.after = Place{listing.items.back().entry.at, listing.items.back().entry.row};
    // What comes in meanwhile is newer than where the walk is, and doesn't disturb it.
    m.clock.advance(1s);
    m.collect(1, 100 + static_cast<Id>(walked.size()));
  }
  std::vector<Id> expected(25);
  for (std::size_t i = 0; i < 25; ++i) expected[i] = static_cast<Id>(25 - i);
  EXPECT_EQ(walked, expected);
  EXPECT_EQ(m.items(1, folder, {.limit = 3, .offset = 3}), Ids({25, 24, 23})) << "three came in";
  EXPECT_EQ(m.io.run(m.service.items(1, folder, {.with_total = true})).value().total, 28);
}

TEST_P(Collections, WhatIsntThereAnyMoreHasNoTitle) {
  Module m(*test_store);
  const Id folder = m.folders(1)[0].id;
  m.collect(1, 7);
  m.gone = {7};
  const auto listing = m.io.run(m.service.items(1, folder, {})).value();
  ASSERT_EQ(listing.items.size(), 1U);
  EXPECT_FALSE(listing.items[0].title);
  EXPECT_EQ(m.collect(2, 7), Outcome::not_found);
  EXPECT_EQ(m.uncollect(1, 7), Outcome::done);
  EXPECT_EQ(m.uncollect(1, 7), Outcome::not_found);
}

TEST_P(CollectionsConcurrency, ManyAtOnceMakeOneDefaultFolder) {
  Module m(*test_store);
  std::vector<std::future<Outcome>> crowd;
  for (Id article = 1; article <= 20; ++article)
    crowd.push_back(std::async(std::launch::async, [&m, article] {
      m.folders(1);
      return m.collect(1, article);
    }));
  for (auto& one : crowd) EXPECT_EQ(one.get(), Outcome::done);
  const auto folders = m.folders(1);
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_EQ(folders[0].item_count, 20);
}

}  // namespace
}  // namespace weir::site::interaction

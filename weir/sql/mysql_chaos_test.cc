// A Database on a server that is in trouble all the time.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "weir/base/random.h"
#include "weir/sql/mysql_fixture.h"

namespace weir::sql {
namespace {

using namespace std::chrono_literals;

class MysqlChaosConcurrency : public MysqlFaults {
 protected:
  // Adds rows, each counted in two others, until it is told to stop; what came of each: nothing, or the kind.
  using Outcomes = std::vector<std::pair<int, std::optional<ErrorKind>>>;
  Outcomes write_until_stopped(int first_id, int step, Random random) {
    Outcomes outcomes;
    for (int id = first_id; !stop; id += step) {
      std::optional<ErrorKind> kind;
      try {
        database->write_now([&](Session& session) {
          // In either order, so that there are deadlocks too.
          const int one = random.chance(0.5) ? 0 : -1;
          session.execute(kAdd, one);
          session.execute(kInsert, id);
          session.execute(kAdd, -1 - one);
        });
      } catch (const Error& error) {
        kind = error.kind();
        std::this_thread::sleep_for(1ms);
      }
      outcomes.emplace_back(id, kind);
    }
    return outcomes;
  }

  // Kills connections of this database, then the server.
  void make_trouble(Random random) const {
    Session root = shared_server().root();
    const Query victims{
        "test", "victims",
        "SELECT id FROM information_schema.processlist WHERE db = ? AND id <> connection_id()"};
    const std::string name = url.substr(url.rfind('/') + 1);
    for (int i = 0; i < 150; ++i) {
      for (const Id victim : root.all(victims, first<Id>, name)) {
        if (!random.chance(0.3)) continue;
        try {
          root.script({"test", "kill", "KILL CONNECTION " + std::to_string(victim)});
        } catch (const Error&) {  // it is gone already
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(random.below(10)));
    }
    shared_server().kill();
    shared_server().start();
    std::this_thread::sleep_for(200ms);
  }

  std::set<int> rows_there() {
    std::set<int> there;
    database->read_now([&](Session& session) {
      session.each({"test", "ids", "SELECT id FROM t WHERE id > 0"},
                   [&](const Row& row) { there.insert(row.get<int>(0)); });
    });
    return there;
  }

  std::atomic<bool> stop{false};
};

// Whatever ends a connection, and whenever: what was acknowledged is there, what was lost isn't, and no effect is
// there twice or by half.
TEST_F(MysqlChaosConcurrency, EffectsHappenOnceOrNotAtAll) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  open({.writers = 4});
  insert(0);
  insert(-1);
  constexpr int kThreads = 4;
  std::array<Outcomes, kThreads> outcomes;
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n)
    threads.emplace_back([&, n] {
      outcomes[static_cast<std::size_t>(n)] = write_until_stopped(n + 1, kThreads, Random(seed + n));
    });
  make_trouble(Random(seed));
  stop = true;
  for (auto& thread : threads) thread.join();
  std::set<int> there;
  eventually([&] { there = rows_there(); });
  std::map<std::optional<ErrorKind>, int> kinds;
  for (const auto& each : outcomes)
    for (const auto& [id, kind] : each) {
      ++kinds[kind];
      if (!kind) EXPECT_TRUE(there.contains(id)) << id << " was acknowledged";
      if (kind == ErrorKind::lost) EXPECT_FALSE(there.contains(id)) << id << " was lost";
      if (kind && kind != ErrorKind::lost)
        EXPECT_EQ(*kind, ErrorKind::unknown) << id << ' ' << to_string(*kind);
    }
  for (const int counter : {0, -1}) EXPECT_EQ(value(counter), static_cast<int>(there.size()));
  EXPECT_GT(kinds[std::nullopt], 50);
  EXPECT_GT(kinds[ErrorKind::lost], 0);
  EXPECT_GT(database->stats().repeats, 0U);
  std::cout << kinds[std::nullopt] << " writes, " << kinds[ErrorKind::lost] << " lost, "
            << kinds[ErrorKind::unknown] << " unknown, " << database->stats().repeats << " repeats\n";
}

}  // namespace
}  // namespace weir::sql

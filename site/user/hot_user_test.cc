// Many at once at the rows of people and their sessions, from two nodes on one store: all make progress.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "site/user/user_fixture.h"
#include "weir/sql/crowd_fixture.h"

namespace weir::site::user {
namespace {

using sql::kCrowd;

class HotUsersConcurrency : public sql::OnEachStore {
 protected:
  struct Node {
    explicit Node(const sql::TestStore& store) : database(store.at({})) {}
    sql::Database database;
    UserStore users{database};
    SessionStore sessions{database};
  };
  double repeated(const char* what, const std::function<void(Node&, Id)>& work) {
    return sql::crowd(what, {&nodes[0].database, &nodes[1].database},
                      [&](std::size_t node, Id number) { work(nodes[node], number); });
  }
  static NewUser person(Id number) {
    NewUser made;
    made.email = "person" + std::to_string(number) + "@example.com";
    made.nickname = "Ann";
    return made;
  }

  IoThreads io;
  Node nodes[2]{Node(*test_store), Node(*test_store)};
};
INSTANTIATE_TEST_SUITE_P(Stores, HotUsersConcurrency, sql::each_store(), sql::name_of_store);

TEST_P(HotUsersConcurrency, SignUpInAndOut) {
  std::atomic<int> taken{0};
  EXPECT_LT(repeated("sign-ups, two for each address",
                     [&](Node& node, Id number) {
                       if (!io.run(node.users.insert(person(number / 2)))) ++taken;
                     }),
            sql::kFew);
  EXPECT_EQ(taken, kCrowd / 2 - 1);
  const Id ann = io.run(nodes[0].users.insert(person(kCrowd))).value();
  // Half of the sessions are over when the others begin, and are cleared away by them.
  const auto session = [](Id number) { return "session " + std::to_string(number); };
  EXPECT_LT(repeated("sessions",
                     [&](Node& node, Id number) {
                       io.run(node.sessions.insert({session(number), ann, "old", false, from_micros(number),
                                                    from_micros(number % 2 == 0 ? number + 10 : 1'000'000)}));
                     }),
            sql::kFew);
  std::atomic<int> rotated{0};
  EXPECT_LT(repeated("refreshes",
                     [&](Node& node, Id number) {
                       const auto done =
                           io.run(node.sessions.rotate({session(number), "old", "new", false,
                                                        from_micros(1'000), from_micros(1'000'000)}));
                       if (done.session) ++rotated;
                     }),
            sql::kFew);
  EXPECT_EQ(rotated, kCrowd / 2);
  EXPECT_LT(repeated("sign-outs",
                     [&](Node& node, Id number) {
                       io.run(node.sessions.end(session(number), from_micros(2'000)));
                     }),
            sql::kFew);
}

TEST_P(HotUsersConcurrency, OnePersonsProfileAndRoles) {
  const Id ann = io.run(nodes[0].users.insert(person(1))).value();
  EXPECT_LT(repeated("changes of one profile",
                     [&](Node& node, Id number) {
                       if (number % 2 == 0) {
                         node.users.set_role_now("person1@example.com", "role" + std::to_string(number), true,
                                                 {});
                       } else {
                         ProfileChange change;
                         change.nickname = std::to_string(number);
                         io.run(node.users.update(ann, change, {}));
                       }
                     }),
            sql::kFew);
  EXPECT_EQ(io.run(nodes[0].users.find(ann))->roles.size(), static_cast<std::size_t>(kCrowd / 2));
}

}  // namespace
}  // namespace weir::site::user

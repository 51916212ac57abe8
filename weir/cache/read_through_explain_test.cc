// explain: what the next read would do, and that it then does.
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "weir/cache/read_through_nodes_fixture.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Local = Explanation::Local;
using Remote = Explanation::Remote;
using Then = Explanation::Then;

struct ReadThroughExplain : ReadThroughNodes {
  Explanation explain(std::size_t i, int key) { return now(node(i).explain(key)); }
};

TEST_F(ReadThroughExplain, FollowsAKeyThroughItsLife) {
  auto told = explain(0, 1);
  EXPECT_EQ(told.local, Local::unknown);
  EXPECT_EQ(told.remote, Remote::nothing);
  EXPECT_EQ(told.then, Then::load);
  store_.hold_loads();
  auto read = start(0, 1);
  EXPECT_EQ(explain(0, 1).then, Then::join);
  told = explain(1, 1);
  EXPECT_EQ(told.remote, Remote::leased);
  EXPECT_EQ(told.remote_lease, 10s);
  EXPECT_EQ(told.then, Then::wait_for_other);
  store_.let_go();
  turn(io_);
  pass(2s);
  told = explain(0, 1);
  EXPECT_EQ(told.local, Local::fresh);
  EXPECT_EQ(told.local_left, 1min - 2s);
  EXPECT_EQ(told.then, Then::serve);
  told = explain(1, 1);
  EXPECT_EQ(told.remote, Remote::value);
  EXPECT_EQ(told.remote_left, 1min - 2s);
  EXPECT_EQ(told.remote_age, 2s);
  EXPECT_EQ(told.then, Then::take_remote);
  EXPECT_FALSE(get(0, 9));
  EXPECT_EQ(explain(0, 9).local, Local::absent);
  EXPECT_EQ(explain(0, 9).then, Then::serve);
  EXPECT_EQ(explain(1, 9).remote, Remote::absent);
}

TEST_F(ReadThroughExplain, TellsWhatIsDueForARefresh) {
  auto given = options();
  given.soft_ttl = 10s;
  make(given);
  get(0, 1);
  pass(10s);
  EXPECT_EQ(explain(0, 1).then, Then::serve_and_refresh);
  EXPECT_EQ(explain(0, 1).local, Local::stale);
  EXPECT_EQ(store_.loads, 1);  // it has started none
  node(0).find(1);
  turn(io_);
  EXPECT_EQ(store_.loads, 2);
}

TEST_F(ReadThroughExplain, TellsThatARefreshIsUnderWay) {
  auto given = options();
  given.soft_ttl = 10s;
  make(given);
  get(0, 1);
  pass(10s);
  store_.hold_loads();
  node(0).find(1);
  turn(io_);
  EXPECT_EQ(store_.loads, 2);
  const auto told = explain(0, 1);
  EXPECT_EQ(told.local, Local::stale);
  EXPECT_TRUE(told.under_way);
  EXPECT_EQ(told.then, Then::serve);
  EXPECT_TRUE(node(0).find(1));
  turn(io_);
  EXPECT_EQ(store_.loads, 2);
  store_.let_go();
  turn(io_);
}

TEST_F(ReadThroughExplain, ItsOwnCancellationIsNoFailureOfTheLevel) {
  level_->set_trouble({.hangs = true});
  asio::cancellation_signal cancel;
  std::exception_ptr end;
  asio::co_spawn(io_, node(0).explain(1),
                 asio::bind_cancellation_slot(
                     cancel.slot(), [&](std::exception_ptr error, const Explanation&) { end = error; }));
  turn(io_);
  cancel.emit(asio::cancellation_type::terminal);
  turn(io_);
  ASSERT_TRUE(end);
  EXPECT_THROW(std::rethrow_exception(end), boost::system::system_error);
}

TEST_F(ReadThroughExplain, TellsOfALevelThatIsAway) {
  for (const auto& [answer, then] : {std::pair(OnRemoteError::bulkhead, Then::load_in_bulkhead),
                                     std::pair(OnRemoteError::availability, Then::load_alone),
                                     std::pair(OnRemoteError::protect, Then::fail)}) {
    auto given = options();
    given.remote.on_error = answer;
    make(given);
    level_->set_trouble({.refuses = true});
    auto told = explain(0, 1);
    EXPECT_EQ(told.remote, Remote::failed);
    EXPECT_EQ(told.remote_error, "the remote level refuses");
    EXPECT_EQ(told.then, then);
    try {
      get(0, 1);
    } catch (const Unavailable&) {
      EXPECT_EQ(then, Then::fail);
    }
    told = explain(0, 2);
    EXPECT_EQ(told.remote, Remote::away);
    EXPECT_EQ(told.asked_again, 100ms);
    EXPECT_EQ(told.then, then);
    level_->set_trouble({});
  }
}

TEST_F(ReadThroughExplain, TellsWhatTheFilterSays) {
  auto given = options();
  given.membership = [](const int& key) -> asio::awaitable<Membership> {
    if (key == 13) throw Unavailable("nobody knows");
    co_return key > 100 ? Membership::absent : Membership::unknown;
  };
  make(given);
  EXPECT_EQ(explain(0, 500).then, Then::answer_absent);
  EXPECT_EQ(explain(0, 500).membership, Membership::absent);
  EXPECT_EQ(explain(0, 13).then, Then::fail);
  EXPECT_EQ(explain(0, 13).membership_error, "nobody knows");
  get(0, 1);
  EXPECT_FALSE(explain(0, 1).membership);  // a read wouldn't ask either
}

TEST_F(ReadThroughExplain, TellsOfBytesThatAreNobodys) {
  level_->plant("1", "foreign");
  EXPECT_EQ(explain(0, 1).remote, Remote::damaged);
  EXPECT_EQ(explain(0, 1).then, Then::load);
}

TEST_F(ReadThroughExplain, WithoutTheLeaseNobodyWaits) {
  auto given = options();
  given.remote.lease = false;
  make(given);
  now(level_->take_over("1"));
  EXPECT_EQ(explain(0, 1).then, Then::load_alone);
}

TEST_F(ReadThroughExplain, ChangesNothing) {
  get(0, 1);
  const std::string before = telemetry::scrape();
  for (const int key : {1, 2, 9}) {
    explain(0, key);
    explain(1, key);
  }
  EXPECT_EQ(telemetry::scrape(), before);
  EXPECT_EQ(store_.loads, 1);
  EXPECT_TRUE(std::holds_alternative<RemoteLevel::Lease>(now(level_->get_or_wait("2", 0ms))));
}

TEST_F(ReadThroughExplain, IsReadable) {
  get(0, 1);
  pass(1500ms);
  EXPECT_EQ(to_string(explain(1, 1)),
            "local:  not known\n"
            "remote: a value, loaded 1500 ms ago, 58500 ms left\n"
            "then:   take what the remote level has\n");
  EXPECT_EQ(to_string(explain(0, 1)),
            "local:  a value, fresh, 58500 ms left\n"
            "remote: a value, loaded 1500 ms ago, 58500 ms left\n"
            "then:   serve what is here\n");
  Explanation away{.local = Local::stale, .under_way = true, .remote = Remote::away, .asked_again = 70ms};
  away.then = Then::serve_and_refresh;
  EXPECT_EQ(to_string(away),
            "local:  a value, due for a refresh\n"
            "flight: a load is under way\n"
            "remote: not asked, it failed a moment ago; asked again in 70 ms\n"
            "then:   serve what is here and refresh it in the background\n");
}

}  // namespace
}  // namespace weir::cache

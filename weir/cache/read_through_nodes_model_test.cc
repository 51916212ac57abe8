// Several nodes over one remote level and one store, against every order of events that a seeded scheduler can
// think of: readers, writers, expiries, cancellations, and a level that is slow, refuses, hangs, loses replies and
// forgets. The code is the real one; only time and the order are made up.
//
// What must hold, for a write whose `invalidate` has answered true:
//  1. a read on the writer's node (or on one that was told by `invalidate`) that begins after it gets nothing older;
//  2. nothing older comes into the level after it;
//  3. a read on any node that begins later than it by a local TTL and a flight's time gets nothing older;
// and always:
//  4. no value is served for longer than the longer of both TTLs after it was read, plus a flight's time;
//  5. every wait ends;
//  6. while the level works, nobody loads without its lease.
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <map>

#include "weir/cache/memory_remote.h"
#include "weir/cache/read_through.h"
#include "weir/cache/test_loop.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// A row is its version; 0 is "no row". Versions only grow, so "stale" is a smaller number.
struct Row {
  std::int64_t version = 0;
  std::int64_t read_at = 0;  // steady nanoseconds
};
using Cache = ReadThrough<int, Row>;
constexpr int kKeys = 2;
constexpr std::size_t kNodes = 3;

Codec<int, Row> row_codec() {
  return {.key = key_text<int>,
          .encode =
              [](const Row& row) { return std::to_string(row.version) + " " + std::to_string(row.read_at); },
          .decode = [](std::string_view bytes) -> std::optional<Row> {
            const std::string text(bytes);
            const auto space = text.find(' ');
            return Row{std::stoll(text), std::stoll(text.substr(space + 1))};
          }};
}

// The level under watch: what comes in after a write is told apart, and it can be told to break its promises.
class WatchedLevel final : public MemoryRemote {
 public:
  enum class Fault {
    none,
    fills_under_any_lease,
    remove_leaves_the_lease,
    remove_leaves_the_value,
    lease_for_all
  };

  WatchedLevel(MemoryRemoteOptions options, Fault fault) : MemoryRemote(std::move(options)), fault_(fault) {}

  Awaitable<std::vector<bool>> fill_many(std::vector<Fill> fills) override {
    const auto offered = fills;
    auto done = co_await MemoryRemote::fill_many(std::move(fills));
    for (std::size_t i = 0; i < offered.size(); ++i) {
      if (fault_ == Fault::fills_under_any_lease && !done[i] && offered[i].value) {
        plant(offered[i].key, *offered[i].value);
        done[i] = true;
      }
      if (done[i] && on_fill) on_fill(offered[i]);
    }
    co_return done;
  }
  Awaitable<Answer> get_or_wait(std::string key, Millis patience) override {
    const bool breaks = fault_ == Fault::lease_for_all;
    auto answer = co_await MemoryRemote::get_or_wait(std::move(key), breaks ? Millis(0) : patience);
    if (breaks && std::holds_alternative<Held>(answer)) co_return Lease{"none"};
    granted += std::holds_alternative<Lease>(answer) ? 1 : 0;
    co_return answer;
  }
  Awaitable<std::vector<Answer>> get_or_lease_many(std::vector<std::string> keys) override {
    auto answers = co_await MemoryRemote::get_or_lease_many(std::move(keys));
    for (const auto& answer : answers) granted += std::holds_alternative<Lease>(answer) ? 1 : 0;
    co_return answers;
  }
  Awaitable<std::optional<Lease>> lease(std::string key) override {
    auto answer = co_await MemoryRemote::lease(std::move(key));
    granted += answer ? 1 : 0;
    co_return answer;
  }
  using MemoryRemote::remove;
  Awaitable<bool> remove(std::string key, Lease own) override {
    if (fault_ == Fault::remove_leaves_the_value) co_return true;
    if (fault_ == Fault::remove_leaves_the_lease) {
      co_await MemoryRemote::get(key);
      evict_value(key);
      co_return false;
    }
    co_return co_await MemoryRemote::remove(std::move(key), std::move(own));
  }
  Awaitable<void> remove_many(std::vector<std::string> keys) override {
    if (fault_ == Fault::remove_leaves_the_value) co_return;
    if (fault_ == Fault::remove_leaves_the_lease) {
      for (const auto& key : keys) evict_value(key);
      co_return;
    }
    co_await MemoryRemote::remove_many(std::move(keys));
  }

  std::function<void(const Fill&)> on_fill;
  int granted = 0;  // leases to load under

 private:
  const Fault fault_;
};
using Fault = WatchedLevel::Fault;

class World {
 public:
  World(std::uint64_t seed, Fault fault);
  ~World();

  // What was wrong; empty: nothing.
  std::string run();
  int reads() const { return reads_; }

 private:
  using Nanos = std::chrono::nanoseconds;
  // The longest that a load or a step of a write is held up, and so that a flight or a write takes: latencies,
  // patience, a wait at the bulkhead, a hanging level's time-outs.
  static constexpr Nanos kHold = 50ms, kFlight = 1s;

  Cache::Options options();
  void fault(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }

  asio::awaitable<void> held();
  asio::awaitable<std::optional<Row>> load(int key);
  asio::awaitable<std::vector<std::pair<int, Row>>> load_many(std::vector<int> keys);
  asio::awaitable<void> write(std::size_t node, int key);
  void ended(std::size_t node, int key, std::int64_t version);

  std::int64_t floor(std::size_t node, int key) const;
  void check(const Cache::Found& found, std::int64_t least, int key);
  void start_reader(std::size_t node, int key);
  void start_bulk_reader(std::size_t node);
  void cancel_a_reader();
  void end_a_hold(bool oldest = false);
  void pass(Nanos by);
  void change_the_weather();
  void accident(int key);
  void step();
  bool finish();

  Random random_;
  SimulatedTime time_;
  asio::io_context io_;
  const bool calm_;  // the level works, if slowly, and forgets nothing
  const bool soft_;
  const Nanos local_ttl_, level_ttl_;
  std::shared_ptr<WatchedLevel> level_;
  std::deque<std::unique_ptr<Cache>> nodes_;
  std::array<std::int64_t, kKeys> rows_{};
  std::array<std::int64_t, kKeys> dropped_{};                         // the last whose drop was told
  std::array<std::array<std::int64_t, kKeys>, kNodes> here_{};        // and on which node
  std::array<std::map<SteadyTime, std::int64_t>, kKeys> everywhere_;  // from when on
  std::deque<std::pair<SteadyTime, std::shared_ptr<Gate>>> holds_;
  std::map<int, std::shared_ptr<asio::cancellation_signal>> readers_;
  int last_reader_ = 0, writers_ = 0, reads_ = 0, loads_ = 0, failed_reads_ = 0;
  bool ending_ = false;
  std::string fault_;
};

World::World(std::uint64_t seed, Fault broken)
    : random_(seed),
      calm_(random_.chance(0.4)),
      soft_(random_.chance(0.5)),
      local_ttl_(random_.chance(0.5) ? 100ms : 9s),
      level_ttl_(random_.chance(0.5) ? 10s : 4s),
      level_(std::make_shared<WatchedLevel>(
          MemoryRemoteOptions{.name = "model",
                              .ttl = std::chrono::duration_cast<std::chrono::milliseconds>(level_ttl_),
                              .negative_ttl = 2s,
                              .lease_ttl = 2h,
                              .timeout = 20ms,
                              .seed = seed,
                              .clock = &time_,
                              .pause = time_.pause()},
          broken)) {
  level_->on_fill = [this](const RemoteLevel::Fill& fill) {
    const int key = std::stoi(fill.key);
    const auto opened = fill.value ? unseal("nodes", fill.key, *fill.value) : std::nullopt;
    const std::int64_t version = opened ? row_codec().decode(opened->value)->version : 0;
    if (version < dropped_[static_cast<std::size_t>(key)]) fault("a stale fill of the level");
  };
  for (std::size_t i = 0; i < kNodes; ++i)
    nodes_.push_back(
        std::make_unique<Cache>(options(), [this](int key) { return load(key); }, io_.get_executor()));
}

// Whatever still waits then, waits for time alone.
World::~World() {
  nodes_.clear();
  ending_ = true;
  level_->set_trouble({});
  for (int i = 0; i < 10'000; ++i) {
    while (!holds_.empty()) end_a_hold();
    turn(io_);
    const auto next = time_.next();
    if (!next) break;
    time_.advance(*next);
  }
}

Cache::Options World::options() {
  const auto millis = [](Nanos time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time); };
  return {.name = "nodes",
          .ttl = millis(local_ttl_),
          .negative_ttl = 50ms,
          .soft_ttl = soft_ ? millis(local_ttl_ / 2) : 0ms,
          .early_refresh = soft_ ? 1.0 : 0.0,
          .load_timeout = 1h,
          .bulk_load = [this](std::vector<int> keys) { return load_many(std::move(keys)); },
          .remote = {.level = level_,
                     .codec = row_codec(),
                     .lease = calm_ || random_.chance(0.8),
                     .patience = calm_ ? 50min : 200ms,
                     .on_error = static_cast<OnRemoteError>(random_.below(3)),
                     .bulkhead_loads = 1 + random_.below(2),
                     .bulkhead_wait = 50ms,
                     .retry_first = 5ms,
                     .retry_last = 40ms},
          .clock = &time_,
          .pause = time_.pause()};
}

asio::awaitable<void> World::held() {
  if (ending_) co_return;
  auto gate = std::make_shared<Gate>();
  holds_.emplace_back(time_.steady_now(), gate);
  co_await gate->wait();
}

// Reads at its beginning or at its end, and takes as long as the scheduler likes.
asio::awaitable<std::optional<Row>> World::load(int key) {
  ++loads_;
  if (calm_ && loads_ > level_->granted) fault("a load without the lease");
  const auto at = static_cast<std::size_t>(key);
  const bool early = random_.chance(0.7), fails = random_.chance(0.1);
  Row row{rows_[at], time_.steady_now().time_since_epoch().count()};
  co_await held();
  if (fails) throw Unavailable("the store is away");
  if (!early) row = {rows_[at], time_.steady_now().time_since_epoch().count()};
  if (row.version == 0) co_return std::nullopt;
  co_return row;
}

asio::awaitable<std::vector<std::pair<int, Row>>> World::load_many(std::vector<int> keys) {
  std::vector<std::pair<int, Row>> rows;
  for (const int key : keys)
    if (const auto row = co_await load(key)) rows.emplace_back(key, *row);
  co_return rows;
}

asio::awaitable<void> World::write(std::size_t node, int key) {
  const auto at = static_cast<std::size_t>(key);
  auto writing = co_await nodes_[node]->begin_write(key);
  co_await held();
  const Row row{++rows_[at], time_.steady_now().time_since_epoch().count()};
  co_await held();
  if (random_.chance(0.1)) co_return;  // given up: nothing is promised for it
  if (random_.chance(0.2)) {
    std::vector<int> keys(1, key);
    if (co_await nodes_[node]->invalidate_all(keys)) ended(node, key, row.version);
    co_return;
  }
  if (!co_await writing.invalidate()) co_return;
  ended(node, key, row.version);
  co_await held();
  if (random_.chance(0.7)) co_await writing.publish(std::make_shared<const Row>(row));
}

void World::ended(std::size_t node, int key, std::int64_t version) {
  const auto at = static_cast<std::size_t>(key);
  const auto raise = [version](std::int64_t& least) { least = std::max(least, version); };
  raise(dropped_[at]);
  raise(here_[node][at]);
  raise(everywhere_[at][time_.steady_now() + local_ttl_ * 11 / 10 + kFlight]);
  if (!random_.chance(0.3)) return;
  for (std::size_t other = 0; other < kNodes; ++other) {  // it tells the others
    nodes_[other]->invalidate(key);
    raise(here_[other][at]);
  }
}

std::int64_t World::floor(std::size_t node, int key) const {
  const auto at = static_cast<std::size_t>(key);
  std::int64_t least = here_[node][at];
  for (const auto& [from, version] : everywhere_[at])
    if (from <= time_.steady_now()) least = std::max(least, version);
  return least;
}

void World::check(const Cache::Found& found, std::int64_t least, int key) {
  ++reads_;
  const std::int64_t version = found ? found->version : 0;
  if (version < least) fault("a stale read of key " + std::to_string(key));
  if (!found) return;
  const Nanos age = time_.steady_now().time_since_epoch() - Nanos(found->read_at);
  if (age > local_ttl_ * 11 / 10 + kFlight) fault("a value past its TTL");
}

void World::start_reader(std::size_t node, int key) {
  auto cancel = std::make_shared<asio::cancellation_signal>();
  const int number = ++last_reader_;
  readers_[number] = cancel;
  asio::co_spawn(io_, nodes_[node]->get(key),
                 asio::bind_cancellation_slot(
                     cancel->slot(), [this, number, key, cancel, least = floor(node, key)](
                                         const std::exception_ptr& error, const Cache::Found& found) {
                       readers_.erase(number);
                       if (error) {
                         ++failed_reads_;
                       } else {
                         check(found, least, key);
                       }
                     }));
}

void World::start_bulk_reader(std::size_t node) {
  static const std::vector<int> both{0, 1};
  const int number = ++last_reader_;
  readers_[number] = nullptr;
  const std::array<std::int64_t, kKeys> least{floor(node, 0), floor(node, 1)};
  asio::co_spawn(
      io_, nodes_[node]->get_all(both),
      [this, number, least](const std::exception_ptr& error, const std::vector<Cache::Found>& found) {
        readers_.erase(number);
        for (int key = 0; !error && key < kKeys; ++key)
          check(found[static_cast<std::size_t>(key)], least[static_cast<std::size_t>(key)], key);
      });
}

void World::cancel_a_reader() {
  if (readers_.empty()) return;
  auto at = readers_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random_.below(readers_.size())));
  // On the reader's executor, as asio asks.
  if (const auto cancel = at->second)
    asio::post(io_, [cancel] { cancel->emit(asio::cancellation_type::terminal); });
}

void World::end_a_hold(bool oldest) {
  if (holds_.empty()) return;
  const auto at = oldest ? 0 : random_.below(holds_.size());
  const auto gate = holds_[at].second;
  holds_.erase(holds_.begin() + static_cast<std::ptrdiff_t>(at));
  gate->open([] {});
}

// In small steps, so that nothing is held up for longer than it may be and what is due happens in its order.
void World::pass(Nanos by) {
  turn(io_);  // what is under way takes no time by itself
  for (Nanos left = by; left > Nanos(0);) {
    Nanos part = std::min(left, kHold / 2);
    if (const auto next = time_.next()) part = std::min(part, std::max(*next, Nanos(1us)));
    if (holds_.empty() && !time_.next()) part = left;
    while (!holds_.empty() && holds_.front().first + kHold <= time_.steady_now() + part) {
      end_a_hold(true);
      turn(io_);
    }
    time_.advance(part);
    left -= part;
    turn(io_);
  }
}

void World::change_the_weather() {
  MemoryRemote::Trouble trouble{.latency = std::chrono::milliseconds(random_.below(4))};
  if (!calm_ && random_.chance(0.5)) {
    switch (random_.below(3)) {
      case 0:
        trouble.refuses = true;
        break;
      case 1:
        trouble.hangs = true;
        break;
      default:
        trouble.loses_replies = true;
    }
  }
  level_->set_trouble(trouble);
}

void World::accident(int key) {
  if (calm_) return;
  switch (random_.below(4)) {
    case 0:
      level_->flush();
      break;
    case 1:
      level_->evict_lease(std::to_string(key));
      break;
    case 2:
      level_->evict_value(std::to_string(key));
      break;
    default:
      level_->plant(std::to_string(key), "somebody else's");
  }
}

void World::step() {
  const int key = static_cast<int>(random_.below(kKeys));
  const std::size_t node = random_.below(kNodes);
  const auto dice = random_.below(100);
  if (dice < 25) {
    start_reader(node, key);
  } else if (dice < 30) {
    start_bulk_reader(node);
  } else if (dice < 38) {
    if (const auto found = nodes_[node]->find(key)) check(*found, floor(node, key), key);
  } else if (dice < 48 && writers_ < 4) {
    ++writers_;
    asio::co_spawn(io_, write(node, key), [this](const std::exception_ptr& error) {
      --writers_;
      if (error) fault("a write fails");
    });
  } else if (dice < 52) {
    cancel_a_reader();
  } else if (dice < 57) {
    change_the_weather();
  } else if (dice < 59) {
    accident(key);
  } else if (dice < 72) {
    pass(Nanos(random_.below(
        static_cast<std::uint64_t>(random_.chance(0.7) ? 3'000'000 : (local_ttl_ / 2).count()))));
  } else {
    end_a_hold();
  }
  if (random_.chance(0.7)) {
    turn(io_);
  } else {
    io_.restart();
    io_.poll_one();
  }
}

// Everything ends, without help but that of time.
bool World::finish() {
  ending_ = true;
  level_->set_trouble({});
  for (int i = 0; i < 200 && (!readers_.empty() || writers_ > 0); ++i) {
    while (!holds_.empty()) end_a_hold();
    pass(20ms);
  }
  return readers_.empty() && writers_ == 0;
}

std::string World::run() {
  for (int i = 0; i < 200 && fault_.empty(); ++i) step();
  if (!finish()) fault("somebody waits for ever");
  return fault_;
}

// Of the slips by hand that it was tried with (no check of the lease, no new generation at a write, flights not
// forgotten, ..) the hardest to find shows in about every hundredth world: so many leave none unseen.
constexpr int kWorlds = 2'000;

TEST(ReadThroughNodesModel, NothingStaleNobodyForgottenNoSecondLoad) {
  const std::uint64_t first = secure_random64();
  int reads = 0;
  for (std::uint64_t seed = first; seed < first + kWorlds; ++seed) {
    World world(seed, Fault::none);
    const std::string fault = world.run();
    ASSERT_EQ(fault, "") << "seed " << seed << ", world " << seed - first + 1;
    reads += world.reads();
  }
  EXPECT_GT(reads, kWorlds * 20);
}

// The model must be able to fail: a level that breaks one of its promises is found out, by this many worlds, every
// time.
TEST(ReadThroughNodesModel, ALevelThatBreaksAPromiseIsFoundOut) {
  for (const Fault fault : {Fault::fills_under_any_lease, Fault::remove_leaves_the_lease,
                            Fault::remove_leaves_the_value, Fault::lease_for_all}) {
    const std::uint64_t first = secure_random64();
    int caught = 0;
    for (std::uint64_t seed = first; seed < first + kWorlds && caught == 0; ++seed)
      caught += World(seed, fault).run().empty() ? 0 : 1;
    EXPECT_EQ(caught, 1) << "fault " << static_cast<int>(fault) << ", seeds from " << first;
  }
}

}  // namespace
}  // namespace weir::cache

// KafkaQueue while its broker stands still or dies, and while members come, hang and are killed.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "weir/base/fault.h"
#include "weir/queue/kafka_fixture.h"
#include "weir/queue/queue_fixture.h"
#include "weir/queue/test_support.h"
#include "weir/testing/metrics.h"

namespace weir::queue {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint32_t kPartitions = 4;
// Within which the partitions of a member that was killed are read again: the promise to who runs Weir.
constexpr std::chrono::seconds kTakeOver{15};

class KafkaChaosConcurrency : public testing::Test {
 protected:
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << "Kafka can't be had";
  }

  KafkaQueue::Options options() const {
    KafkaQueue::Options made;
    made.url = server_->url();
    made.partitions = kPartitions;
    return made;
  }

  KafkaServer* const server_ = shared_kafka();
  const std::string topic_ = fresh_name("topic"), group_ = fresh_name("group");
};

// Publishes without a pause, and again what Kafka didn't take, as Producer does.
class Load {
 public:
  Load(KafkaQueue& queue, std::string topic)
      : queue_(queue), topic_(std::move(topic)), thread_([this] { run(); }) {}
  ~Load() { stop(); }

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::uint64_t published() const { return published_; }
  int refusals() const { return refusals_; }
  std::chrono::milliseconds longest() const { return longest_.load(); }

 private:
  static constexpr std::uint64_t kBatch = 300;
  static constexpr std::uint64_t kKeys = 10;

  void run() {
    while (!stopping_) {
      std::vector<std::string> keys;
      std::vector<Record> batch;
      for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back("k" + std::to_string(i));
      for (std::uint64_t i = 0; i < kBatch; ++i)
        batch.push_back({topic_, keys[i % kKeys], "payload", "", 1, 0, published_ + i + 1, from_micros(1)});
      while (!publish(batch)) std::this_thread::sleep_for(20ms);
      published_ += kBatch;
    }
  }

  bool publish(std::span<const Record> batch) {
    const auto begin = SteadyClock::now();
    bool done = true;
    try {
      queue_.publish(batch);
    } catch (const Unavailable&) {
      ++refusals_;
      done = false;
    }
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - begin);
    if (took > longest_.load()) longest_ = took;
    return done;
  }

  KafkaQueue& queue_;
  const std::string topic_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> published_{0};
  std::atomic<int> refusals_{0};
  std::atomic<std::chrono::milliseconds> longest_{0ms};
  std::thread thread_;
};

TEST_F(KafkaChaosConcurrency, NothingIsLostAndOrderHoldsThroughAStandstillAndADeathOfTheBroker) {
  auto some = options();
  some.publish_timeout = 2s;
  KafkaQueue queue(some);
  queue.subscribe(topic_, group_);
  Load load(queue, topic_);
  ASSERT_TRUE(eventually([&] { return load.published() > 20'000; }));
  server_->pause();
  std::this_thread::sleep_for(10s);
  EXPECT_GE(load.refusals(), 1);
  const auto before = load.published();
  server_->resume();
  ASSERT_TRUE(eventually([&] { return load.published() > before + 20'000; }));
  const int refusals = load.refusals();
  server_->kill();
  std::this_thread::sleep_for(3s);
  EXPECT_GT(load.refusals(), refusals);
  server_->start();
  const auto after = load.published();
  ASSERT_TRUE(eventually([&] { return load.published() > after + 20'000; }));
  load.stop();
  EXPECT_LT(load.longest(), 15s);

  const auto member = queue.join(topic_, group_);
  std::map<std::string, std::uint64_t> highest;
  std::set<std::uint64_t> seen;
  std::vector<Message> messages;
  const auto until = SteadyClock::now() + 60s;
  std::size_t again = 0;
  while (seen.size() < load.published() && SteadyClock::now() < until) {
    messages.clear();
    ASSERT_TRUE(member->take(messages, {}));
    for (const Message& message : messages) {
      if (!seen.insert(message.sequence).second) {
        ++again;
        continue;
      }
      auto& last = highest[std::string(message.key)];
      ASSERT_LT(last, message.sequence) << "first copies are in order; key " << message.key;
      last = message.sequence;
    }
    member->commit();
  }
  EXPECT_EQ(seen.size(), load.published());
  RecordProperty("delivered_again", static_cast<int>(again));
}

// A member in a process of its own takes until it is killed; says on its standard output that it has something.
TEST(KafkaMember, DISABLED_TakesUntilItIsKilled) {
  KafkaQueue::Options options;
  options.url = std::getenv("WEIR_TEST_KAFKA");
  KafkaQueue queue(options);
  const auto member = queue.join(std::getenv("WEIR_TEST_TOPIC"), std::getenv("WEIR_TEST_GROUP"));
  std::vector<Message> messages;
  while (member->take(messages, {})) {
    if (!messages.empty()) ASSERT_EQ(::write(3, "x", 1), 1);
    messages.clear();
  }
}

// Starts that member; the number that it can be killed by, and where it speaks.
std::pair<pid_t, int> start_member(const std::string& url, const std::string& topic,
                                   const std::string& group) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const std::vector<std::string> words{"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                       "--gtest_filter=KafkaMember.DISABLED_TakesUntilItIsKilled"};
  const std::vector<std::string> variables{"WEIR_TEST_KAFKA=" + url, "WEIR_TEST_TOPIC=" + topic,
                                           "WEIR_TEST_GROUP=" + group};
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> made;
    for (const auto& text : texts) made.push_back(const_cast<char*>(text.c_str()));
    made.push_back(nullptr);
    return made;
  };
  const auto arguments = pointers(words), environment = pointers(variables);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("can't fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::dup2(ends[1], 3) == 3) ::execve(arguments[0], arguments.data(), environment.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

TEST_F(KafkaChaosConcurrency, ThePartitionsOfAKilledMemberAreReadAgainSoon) {
  KafkaQueue queue(options());
  queue.subscribe(topic_, group_);
  const auto [pid, speaks] = start_member(server_->url(), topic_, group_);
  queue.publish(Records(400, topic_));
  char said = 0;
  EXPECT_EQ(::read(speaks, &said, 1), 1);
  ::close(speaks);
  // It has all partitions, and a member that comes now gets some when the other lets them go.
  const auto member = queue.join(topic_, group_);
  std::vector<Message> messages;
  const auto joined_by = SteadyClock::now() + 10s;
  while (messages.empty() && SteadyClock::now() < joined_by) ASSERT_TRUE(member->take(messages, {}));
  EXPECT_FALSE(messages.empty()) << "the other doesn't share";
  ::kill(pid, SIGKILL);
  const auto killed = SteadyClock::now();
  ::waitpid(pid, nullptr, 0);
  std::set<std::string> payloads;
  while (payloads.size() < 400 && SteadyClock::now() < killed + 2 * kTakeOver) {
    for (const Message& message : messages) payloads.emplace(message.payload);
    messages.clear();
    ASSERT_TRUE(member->take(messages, {}));
  }
  EXPECT_EQ(payloads.size(), 400U);
  EXPECT_LE(SteadyClock::now() - killed, kTakeOver);
}

TEST_F(KafkaChaosConcurrency, ABatchThatWaitsWhileItsPartitionGoesIsLostAndReadByTheOther) {
  KafkaQueue queue(options());
  queue.subscribe(topic_, group_);
  queue.publish(Records(400, topic_));
  const auto member = queue.join(topic_, group_);
  std::vector<Message> messages;
  ASSERT_TRUE(eventually([&] { return member->take(messages, {}) && messages.size() >= 400; }));
  EXPECT_TRUE(member->keep());

  std::mutex mutex;
  std::set<std::string> by_other, by_member;
  std::atomic<bool> done{false};
  std::thread thread([&] {
    const auto other = queue.join(topic_, group_);
    std::vector<Message> some;
    while (!done && other->take(some, {.max_wait = 10ms})) {
      const std::lock_guard lock(mutex);
      for (const Message& message : some) by_other.emplace(message.payload);
      some.clear();
      other->commit();
    }
  });
  EXPECT_TRUE(eventually([&] {
    std::this_thread::sleep_for(100ms);
    return !member->keep();
  }));
  EXPECT_FALSE(member->keep()) << "until it is rewound";
  member->rewind();
  EXPECT_TRUE(member->keep());
  const auto all = [&] {
    messages.clear();
    EXPECT_TRUE(member->take(messages, {.max_wait = 10ms}));
    const std::lock_guard lock(mutex);
    for (const Message& message : messages) by_member.emplace(message.payload);
    return by_member.size() + by_other.size() >= 400;
  };
  EXPECT_TRUE(eventually(all));
  member->commit();
  EXPECT_TRUE(eventually([&] { return total_lag(queue, topic_, group_) == 0; }));
  done = true;
  thread.join();
  EXPECT_EQ(by_member.size() + by_other.size(), 400U) << "what is still its own, the member has taken again";
  EXPECT_FALSE(by_member.empty());
  EXPECT_FALSE(by_other.empty());
}

TEST_F(KafkaChaosConcurrency, AMemberThatHangsIsOutAndComesBack) {
  auto some = options();
  some.max_poll = 9'500ms;
  KafkaQueue queue(some);
  queue.subscribe(topic_, group_);
  queue.publish(Records(100, topic_));
  const auto member = queue.join(topic_, group_);
  std::vector<Message> messages;
  ASSERT_TRUE(eventually([&] { return member->take(messages, {}) && messages.size() >= 100; }));
  std::this_thread::sleep_for(11s);
  EXPECT_NO_THROW(member->commit()) << "it is nothing";
  EXPECT_EQ(total_lag(queue, topic_, group_), 100);
  messages.clear();
  EXPECT_TRUE(eventually([&] { return member->take(messages, {}) && messages.size() >= 100; }));
  EXPECT_EQ(messages.size(), 100U);
  member->commit();
  EXPECT_EQ(total_lag(queue, topic_, group_), 0);
}

}  // namespace
}  // namespace weir::queue

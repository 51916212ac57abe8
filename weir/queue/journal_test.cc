#include "weir/queue/journal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/queue/journal_format.h"
#include "weir/queue/partition.h"
#include "weir/testing/temp_dir.h"

namespace weir::queue {
namespace {

Journal::Options options_in(const TempDir& dir, std::size_t size = Journal::kMinSize) {
  return {.directory = dir / "", .size = size};
}

struct Kept {
  std::string topic, key, payload, event_id;
  std::uint64_t producer;
  std::uint32_t lane;
  std::uint64_t sequence;
};

// Everything that is in the journal, released.
std::vector<Kept> drain(Journal& journal, std::size_t at_once = 1'000) {
  std::vector<Kept> all;
  std::vector<Record> records;
  for (;;) {
    const auto before = journal.read_position();
    journal.read(records, at_once, 1 << 20);
    for (const auto& r : records)
      all.push_back({std::string(r.topic), std::string(r.key), std::string(r.payload),
                     std::string(r.event_id), r.producer, r.lane, r.sequence});
    journal.release();
    if (records.empty() && journal.read_position() == before) return all;
  }
}

double damaged() {
  return telemetry::counter("weir_queue_damaged_total", "Places where stored events were damaged and skipped",
                            {{"where", "journal"}})
      .value();
}

double dropped(const std::string& topic) {
  return telemetry::counter("weir_queue_dropped_total", "Events that the journal could not take",
                            {{"topic", topic}})
      .value();
}

TEST(Journal, GivesEventsInOrderWithDenseSequencesByTopicAndLane) {
  TempDir dir;
  ManualClock clock;
  auto options = options_in(dir);
  options.clock = &clock;
  Journal journal(options);
  const char* topics[] = {"a", "b"};
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "article:" + std::to_string(i % 37);
    ASSERT_TRUE(journal.append({topics[i % 2], key, std::to_string(i), i % 10 == 0 ? "mine" : ""}));
  }
  const auto all = drain(journal, 7);
  ASSERT_EQ(all.size(), 1000u);
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> next;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].payload, std::to_string(i));
    EXPECT_EQ(all[i].event_id, i % 10 == 0 ? "mine" : "");
    EXPECT_EQ(all[i].producer, journal.producer());
    EXPECT_EQ(all[i].lane, partition_of(all[i].key, 8));
    EXPECT_EQ(all[i].sequence, ++next[std::make_pair(all[i].topic, all[i].lane)]);
  }
  EXPECT_EQ(journal.waiting_bytes(), 0u);
}

TEST(Journal, StampsWithItsClock) {
  TempDir dir;
  ManualClock clock;
  auto options = options_in(dir);
  options.clock = &clock;
  Journal journal(options);
  clock.advance(std::chrono::hours(5));
  journal.append({"t", "k", ""});
  std::vector<Record> records;
  journal.read(records, 1, 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].appended_at, clock.now());
}

TEST(Journal, WhenFullDropsAndCountsAndGoesOnWhenReleased) {
  TempDir dir;
  Journal journal(options_in(dir));
  const std::string payload(1'000, 'x');
  const double before = dropped("full");
  int taken = 0;
  while (journal.append({"full", "k", payload})) ++taken;
  EXPECT_GT(taken, 200);
  EXPECT_LE(taken, 262);
  EXPECT_FALSE(journal.append({"full", "k", payload}));
  EXPECT_EQ(dropped("full"), before + 2);
  EXPECT_GT(journal.waiting_bytes(), Journal::kMinSize * 9 / 10);
  EXPECT_EQ(drain(journal).size(), static_cast<std::size_t>(taken));
  // Dropped ones left no gap in the sequences.
  EXPECT_TRUE(journal.append({"full", "k", payload}));
  const auto more = drain(journal);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].sequence, static_cast<std::uint64_t>(taken) + 1);
}

TEST(Journal, RefusesWhatIsLargerThanItsLimits) {
  TempDir dir;
  Journal journal(options_in(dir));
  const std::string largest(kMaxPayloadBytes, 'p'), key(kMaxKeyBytes, 'k'), id(kMaxEventIdBytes, 'i');
  const std::string topic(kMaxTopicBytes, 't');
  EXPECT_TRUE(journal.append({topic, key, largest, id}));
  EXPECT_FALSE(journal.append({topic, key, largest + "x", id}));
  EXPECT_FALSE(journal.append({topic, key + "x", largest, id}));
  EXPECT_FALSE(journal.append({topic, key, largest, id + "x"}));
  EXPECT_FALSE(journal.append({"", "k", ""}));
  ASSERT_EQ(drain(journal).size(), 1u);
}

TEST(Journal, RefusesASecondOpener) {
  TempDir dir;
  Journal journal(options_in(dir));
  EXPECT_THROW(Journal second(options_in(dir)), Unusable);
}

TEST(Journal, TheNextStartGetsWhatIsLeftWithItsIds) {
  TempDir dir;
  std::uint64_t first_producer = 0;
  {
    Journal journal(options_in(dir));
    first_producer = journal.producer();
    for (int i = 0; i < 900; ++i) ASSERT_TRUE(journal.append({"t", "k", std::to_string(i)}));
    std::vector<Record> records;
    journal.read(records, 100, 1 << 20);
    journal.release();
    journal.read(records, 100, 1 << 20);  // not released: given again
  }
  Journal journal(options_in(dir));
  EXPECT_NE(journal.producer(), first_producer);
  EXPECT_GT(journal.waiting_bytes(), 0u);
  ASSERT_TRUE(journal.append({"t", "k", "new"}));
  const auto all = drain(journal);
  ASSERT_EQ(all.size(), 801u);
  for (std::size_t i = 0; i < 800; ++i) {
    EXPECT_EQ(all[i].payload, std::to_string(i + 100));
    EXPECT_EQ(all[i].producer, first_producer);
    EXPECT_EQ(all[i].sequence, i + 101);
  }
  EXPECT_EQ(all.back().payload, "new");
  EXPECT_EQ(all.back().producer, journal.producer());
  EXPECT_EQ(all.back().sequence, 1u);
}

TEST(Journal, OldRecordsOfReusedSegmentsAreNotBelieved) {
  TempDir dir;
  const std::string payload(500, 'x');
  for (int round = 0; round < 3; ++round) {
    Journal journal(options_in(dir));
    for (int i = 0; i < 2'000; ++i) {  // many times around the ring, full of records that look whole
      ASSERT_TRUE(journal.append({"t", "k", payload}));
      if (i % 50 == 0) drain(journal);
    }
    drain(journal);
    ASSERT_TRUE(journal.append({"t", "k", "last"}));
  }
  Journal journal(options_in(dir));
  const auto all = drain(journal);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].payload, "last");
}

TEST(Journal, KeepsItsGeometryWhileItHoldsEventsAndTakesTheNewOneAfterwards) {
  TempDir dir;
  {
    Journal journal(options_in(dir, 1 << 20));
    for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(journal.append({"t", "k", std::string(700, 'x')}));
  }
  {
    Journal journal(options_in(dir, Journal::kMinSize));
    EXPECT_EQ(drain(journal).size(), 1'000u);
  }
  struct stat status{};
  {
    Journal journal(options_in(dir, Journal::kMinSize));
    ASSERT_EQ(::stat((dir / "journal").c_str(), &status), 0);
    EXPECT_EQ(status.st_size, static_cast<off_t>(Journal::kMinSize + detail::kFileHeaderBytes));
    ASSERT_TRUE(journal.append({"t", "k", ""}));
  }
  Journal journal(options_in(dir, 64 << 20));
  EXPECT_EQ(drain(journal).size(), 1u);
  ASSERT_TRUE(journal.append({"t", "k", ""}));
  EXPECT_EQ(drain(journal).size(), 1u);
}

TEST(Journal, SendsWhatIsWholeOfADamagedSegmentAndReportsTheRest) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const double none = damaged();
  for (int round = 0; round < 60; ++round) {
    TempDir dir;
    constexpr int kEvents = 1'000;
    {
      Journal journal(options_in(dir));
      for (int i = 0; i < kEvents; ++i)
        ASSERT_TRUE(journal.append({"t", "article:" + std::to_string(i % 9), std::to_string(i)}));
    }
    std::fstream file(dir / "journal", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    const int flips = static_cast<int>(1 + random.below(5));
    for (int flip = 0; flip < flips; ++flip) {
      // The first segment is the first that is used; the damage lies in its header or its events.
      const auto at = static_cast<std::streamoff>(detail::kFileHeaderBytes + random.below(60'000));
      file.seekg(at);
      const auto old = file.get();
      file.seekp(at);
      file.put(static_cast<char>(old ^ static_cast<int>(1 + random.below(255))));
    }
    file.close();
    const double before = damaged();
    Journal journal(options_in(dir));
    const auto all = drain(journal);
    EXPECT_GE(all.size(), static_cast<std::size_t>(kEvents - flips));
    EXPECT_LE(all.size(), static_cast<std::size_t>(kEvents));
    if (all.size() < kEvents) EXPECT_GT(damaged(), before);
    int last = -1;
    for (const auto& kept : all) {
      EXPECT_GT(std::stoi(kept.payload), last);
      last = std::stoi(kept.payload);
    }
    // And the journal is usable as ever.
    ASSERT_TRUE(journal.append({"t", "k", "after"}));
    EXPECT_EQ(drain(journal).size(), 1u);
  }
  EXPECT_GT(damaged(), none + 30);
}

TEST(Journal, ADamagedSegmentHeaderCostsNoEvent) {
  TempDir dir;
  for (int field = 0; field < 4; ++field) {
    {
      Journal journal(options_in(dir));
      for (int i = 0; i < 300; ++i) ASSERT_TRUE(journal.append({"t", "k", std::to_string(i)}));
    }
    std::fstream file(dir / "journal", std::ios::in | std::ios::out | std::ios::binary);
    for (std::size_t segment = 0; segment < 4; ++segment) {
      file.seekp(static_cast<std::streamoff>(detail::kFileHeaderBytes + segment * 64 * 1024));
      if (field < 3) file.seekp(8 * field, std::ios::cur);
      file.write("damaged!damaged!damaged!", field < 3 ? 8 : 24);
    }
    file.close();
    Journal journal(options_in(dir));
    const auto all = drain(journal);
    ASSERT_GE(all.size(), 300u) << "field " << field;
    for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(all[all.size() - 300 + i].payload, std::to_string(i));
  }
}

TEST(Journal, SurvivesADamagedFileHeader) {
  TempDir dir;
  {
    Journal journal(options_in(dir));
    for (int i = 0; i < 1'500; ++i) ASSERT_TRUE(journal.append({"t", "k", std::to_string(i)}));
  }
  {
    std::fstream file(dir / "journal", std::ios::in | std::ios::out | std::ios::binary);
    file.write("garbagegarbagegarbage", 21);
  }
  Journal journal(options_in(dir));
  EXPECT_EQ(drain(journal).size(), 1'500u);
}

// RLIMIT_FSIZE makes allocation fail as a full disk does.
class FullDisk {
 public:
  explicit FullDisk(std::size_t bytes) {
    old_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST(Journal, WorksWithTheSpaceThatAFullDiskGivesAndGrowsLater) {
  TempDir dir;
  std::optional<Journal> journal;
  {
    FullDisk full(detail::kFileHeaderBytes + 2 * 64 * 1024 + 5'000);
    journal.emplace(options_in(dir));
    EXPECT_TRUE(journal->degraded());
    const std::string payload(1'000, 'x');
    int taken = 0;
    while (journal->append({"t", "k", payload})) ++taken;
    EXPECT_GT(taken, 100);
    EXPECT_LT(taken, 130);
    EXPECT_FALSE(journal->grow());
  }
  EXPECT_TRUE(journal->grow());
  EXPECT_FALSE(journal->degraded());
  EXPECT_TRUE(journal->append({"t", "k", "y"}));
  EXPECT_GT(drain(*journal).size(), 101u);
}

TEST(Journal, WithoutAnySpaceItDropsAndTheNextTryHelps) {
  TempDir dir;
  std::optional<Journal> journal;
  const double before = dropped("nospace");
  {
    FullDisk full(0);
    journal.emplace(options_in(dir));
    EXPECT_TRUE(journal->degraded());
    EXPECT_FALSE(journal->append({"nospace", "k", ""}));
    EXPECT_EQ(dropped("nospace"), before + 1);
    EXPECT_FALSE(journal->grow());
    EXPECT_TRUE(drain(*journal).empty());
  }
  EXPECT_TRUE(journal->grow());
  EXPECT_TRUE(journal->append({"nospace", "k", ""}));
  EXPECT_EQ(drain(*journal).size(), 1u);
}

TEST(Journal, AllItsSpaceIsAllocatedAtTheStart) {
  TempDir dir;
  Journal journal(options_in(dir, 4 << 20));
  struct stat status{};
  ASSERT_EQ(::stat((dir / "journal").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 4 << 20);
}

// A child appends as fast as it can and tells, through shared memory, which appends have returned; the parent
// kills it at a random moment. Whatever returned is there afterwards, once, and in order.
TEST(JournalCrash, WhatAppendReturnedForSurvivesKill) {
  const std::uint64_t seed = secure_random64();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  auto* returned = static_cast<std::atomic<std::uint64_t>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int round = 0; round < 40; ++round) {
    TempDir dir;
    returned->store(0);
    const pid_t child = ::fork();
    if (child == 0) {
      Journal journal(options_in(dir, 8 << 20));
      std::vector<Record> records;
      for (std::uint64_t i = 1;; ++i) {
        const std::string text = std::to_string(i);
        if (!journal.append({"t", "article:" + text, text})) ::pause();
        returned->store(i, std::memory_order_release);
      }
    }
    ASSERT_GT(child, 0);
    while (returned->load() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(8'000)));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const std::uint64_t promised = returned->load();
    Journal journal(options_in(dir, 8 << 20));
    const auto all = drain(journal);
    ASSERT_GE(all.size(), promised);
    ASSERT_LE(all.size(), promised + 1);  // the one whose return nobody saw
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i].payload, std::to_string(i + 1));
  }
  ::munmap(returned, 4096);
}

TEST(JournalConcurrency, ManyAppendersAndOneReaderLoseNothing) {
  TempDir dir;
  Journal journal(options_in(dir, 1 << 20));
  constexpr int kThreads = 4, kEach = 20'000;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const std::string key = "article:" + std::to_string(t), payload = std::to_string(i);
        while (!journal.append({"t", key, payload})) std::this_thread::yield();
      }
      --running;
    });
  std::vector<Kept> all;
  for (bool last = false; !last;) {
    last = running == 0;
    for (auto& kept : drain(journal, 300)) all.push_back(std::move(kept));
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kThreads * kEach));
  std::map<std::string, int> next;
  std::map<std::uint32_t, std::uint64_t> sequence;
  for (const auto& kept : all) {
    EXPECT_EQ(kept.payload, std::to_string(next[kept.key]++));
    EXPECT_EQ(kept.sequence, ++sequence[kept.lane]);
  }
}

}  // namespace
}  // namespace weir::queue

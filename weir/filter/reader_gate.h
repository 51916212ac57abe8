// ReaderGate: lets a writer wait until nobody can still be reading what it has just replaced.
//
// Sleepable read-copy-update (McKenney, 2006) with one counter a stripe of threads: a reader counts itself in
// and out, on a cache line that few others use, and never waits. The writer has replaced a pointer; whoever
// comes from then on reads the new one, so that it only waits for those who are inside. There are two sets
// of counters, so that it doesn't wait for newcomers: it sends them to the other set and sees the first run
// empty; then once more the other way, because a reader may have chosen a set long ago and counted itself in
// only now. This header is the filters' own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace weir::filter {

class ReaderGate {
 public:
  // What a reader holds while it reads.
  class Pass {
   public:
    explicit Pass(std::atomic<std::uint64_t>& count) : count_(count) { count_.fetch_add(1); }
    ~Pass() { count_.fetch_sub(1, std::memory_order_release); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    std::atomic<std::uint64_t>& count_;
  };

  // Read the pointer after this. Lock-free.
  Pass enter() { return enter(set()); }
  // Its two steps: choose a set, and some time later count oneself in. (Apart for a test of the worst case.)
  std::size_t set() const { return set_.load(); }
  Pass enter(std::size_t set) { return Pass(stripes_[stripe_of_thread()].inside[set]); }

  // Returns when everyone who was inside at the call has left. Replace the pointer before this. Takes as long
  // as the slowest reader. Not from inside; one writer at a time.
  void wait_for_readers() {
    for (int round = 0; round < 2; ++round) {
      const std::size_t emptied = set_.load();
      set_.store(1 - emptied);
      for (auto& stripe : stripes_)
        while (stripe.inside[emptied].load() != 0) std::this_thread::yield();
    }
  }

 private:
  static constexpr std::size_t kStripes = 32;
  struct alignas(64) Stripe {
    std::array<std::atomic<std::uint64_t>, 2> inside{};
  };

  // Threads take stripes in turn.
  static std::size_t stripe_of_thread() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return mine;
  }

  std::array<Stripe, kStripes> stripes_{};
  alignas(64) std::atomic<std::size_t> set_{0};
};

}  // namespace weir::filter

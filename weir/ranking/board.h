// Board: the last good result of something that is computed now and then, for any number of readers.
//
// Readers never wait and never get an error because a refresh failed: they go on with the last good one,
// which is then marked stale. `read` takes no lock and doesn't loop (wait-free); it costs about 30 ns, most
// of it for the count of the shared pointer. Publishing waits for the readers that are inside `read` at that
// moment. Thread-safe.
//
// Why not std::atomic<std::shared_ptr>: libstdc++'s is a spin lock inside, and a reader that is descheduled
// while it holds it stops all the others. This is Left-Right (Ramalhete and Correia, "Left-Right: A
// Concurrency Control Technique with Wait-Free Population Oblivious Reads", 2015): two copies; readers use
// one while the writer changes the other, then the sides are swapped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "weir/base/clock.h"

namespace weir::ranking {

// A value of a copyable type that is read without a lock and seldom replaced.
template <class T>
class LeftRight {
 public:
  explicit LeftRight(T value = T()) : sides_{value, value} {}

  T load() const {
    // The counter that was chosen here is the one to leave, although the gate may be turned meanwhile.
    auto& inside = inside_[gate_.load()];
    inside.fetch_add(1);
    const Leave leave{inside};
    return sides_[side_.load()];
  }

  // Puts change(the present value) in its place. Writers wait for each other.
  template <class F>
  void update(F change) {
    const std::lock_guard lock(writing_);
    const std::size_t seen = side_.load();
    T next = change(std::as_const(sides_[seen]));
    sides_[1 - seen] = next;  // nobody reads there
    side_.store(1 - seen);
    // Whoever entered before the sides were swapped may still read the old one. Turning the gate lets each
    // counter run empty although new readers keep coming.
    const std::size_t gate = gate_.load();
    drain(1 - gate);
    gate_.store(1 - gate);
    drain(gate);
    sides_[seen] = std::move(next);
  }

 private:
  // Each on a cache line of its own: readers of the one gate don't disturb those who leave by the other.
  struct alignas(64) Count : std::atomic<std::int64_t> {
    Count() : std::atomic<std::int64_t>(0) {}
  };
  struct Leave {  // also when copying the value throws
    Count& inside;
    ~Leave() { inside.fetch_sub(1); }
  };

  void drain(std::size_t gate) const {
    while (inside_[gate].load() != 0) std::this_thread::yield();
  }

  // All in sequential order: a reader's step in and its look at the side must not change places.
  std::array<T, 2> sides_;
  std::atomic<std::size_t> side_{0}, gate_{0};
  mutable std::array<Count, 2> inside_;
  std::mutex writing_;
};

template <class T>
class Board {
 public:
  struct Edition {
    std::uint64_t version = 0;            // grows with each publication; 0: nothing was ever published
    std::optional<WallTime> computed_at;  // when it was computed
    bool stale = true;                    // a later refresh failed, or there was none yet
    std::shared_ptr<const T> value;       // null before the first publication
  };

  // The last good edition.
  Edition read() const { return last_.load(); }

  // Replaces the edition when the version is another; says whether it did. The same version, published again,
  // only says that it is still good. It needn't be greater: a store that was put back to an older state wins
  // too.
  bool publish(std::uint64_t version, WallTime computed_at, std::shared_ptr<const T> value) {
    bool replaced = false;
    last_.update([&](const Edition& before) {
      replaced = before.version != version || before.value == nullptr;
      if (replaced) return Edition{version, computed_at, false, std::move(value)};
      Edition same = before;
      same.stale = false;
      return same;
    });
    return replaced;
  }

  // A refresh failed: readers keep what they have, and are told.
  void mark_stale() {
    last_.update([](Edition edition) {
      edition.stale = true;
      return edition;
    });
  }

 private:
  LeftRight<Edition> last_;
};

}  // namespace weir::ranking

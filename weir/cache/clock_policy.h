// ClockPolicy: who stays. TinyLFU on two clocks.
//
//  - New entries come into a window, a FIFO queue; the rest lies in the main space, a CLOCK (Corbato, 1968).
//    A hit raises the entry's 2-bit mark and touches nothing else: no list, no sketch.
//  - What is marked when it would leave the window goes round again, its mark carried into the frequency
//    sketch. The first that isn't becomes a candidate for the main space, and challenges its victim: the
//    first in the main space without a mark, after those before it gave up one mark each and went round.
//  - The candidate wins when the sketch knows it as more frequent (TinyLFU: Einziger, Friedman and Manes, ACM
//    TOS 2017). So that nobody can shut the door by collisions in the sketch, a candidate that is frequent at
//    all wins now and then by chance (as in Caffeine).
//  - With `by_recency` it also wins when its last miss is newer than the victim's last mark (the idea of LIRS:
//    Jiang and Zhang, SIGMETRICS 2002), which keeps up where the popular change all at once.
//
// How large the window should be and whether recency counts depends on the keys: the PolicyTuner finds out.
// Every call does bounded work: a turn of either clock skips at most kMostSkips entries. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weir/base/hash.h"
#include "weir/cache/miss_ghost.h"

namespace weir::cache::detail {

enum class Queue : std::uint8_t { none, window, main };

struct PolicyChoice {
  double window = 0;        // part of the capacity; at least one entry
  bool by_recency = false;  // the last miss counts too

  friend bool operator==(const PolicyChoice&, const PolicyChoice&) = default;
};

// What the policy keeps in an entry.
template <class Id>
struct PolicyLinks {
  std::uint32_t hash = 0;
  Id next = 0, previous = 0;  // 0: none
  Queue queue = Queue::none;
  MissGhost::Time stamp = MissGhost::kNever;  // in the window: the miss before the one that brought it;
                                              // in the main space: when the hand last saw it marked
};

// `Nodes` has: type Id; links(id) -> PolicyLinks<Id>&; weight(id); mark(id), set_mark(id, mark); dead(id):
// whether it may go at once. `Frequency` has add(hash, times) and estimate(hash).
template <class Nodes, class Frequency>
class ClockPolicy {
 public:
  using Id = typename Nodes::Id;
  static constexpr unsigned kMostMarks = 3;

  ClockPolicy(Nodes& nodes, Frequency& frequency) : nodes_(nodes), frequency_(frequency) {}
  void set_seed(std::uint64_t seed) { chance_ = seed; }

  // The bound, in weight, and about how many entries that will be.
  void set_capacity(std::uint64_t weight, std::size_t entries) {
    capacity_ = weight;
    ghost_.resize(entries);
  }
  void choose(PolicyChoice choice) { choice_ = choice; }
  // At once, where nothing is at stake yet; else the window follows the choice step by step.
  void jump_to_choice() { window_target_ = goal(); }

  // An entry that comes in, after a miss. Room was made for it.
  void add(Id id) {
    auto& links = nodes_.links(id);
    links.stamp = ghost_.miss(links.hash);
    frequency_.add(links.hash, 1);
    approach_goal();
    push(window_, Queue::window, id);
    // What is over goes on into the main space: while the cache fills, and when the window was made smaller.
    for (int moved = 0; moved < kMostMoves && window_.weight > window_target_ && window_.entries > 1; ++moved)
      promote(window_candidate());
  }

  // Takes an entry out of its queue.
  void remove(Id id) {
    pop(nodes_.links(id).queue == Queue::window ? window_ : main_, id);
    nodes_.links(id).queue = Queue::none;
  }

  // Who goes next, to make room for a new entry of this weight; still in its queue. 0 when all are gone.
  Id victim(std::uint64_t weight) {
    const bool full = window_.weight + weight > window_target_;
    const Id candidate = window_.head != 0 && (full || main_.head == 0) ? window_candidate() : 0;
    if (candidate != 0 && (main_.head == 0 || nodes_.dead(candidate))) return candidate;
    const Id victim = main_victim();
    if (candidate == 0 || victim == 0 || nodes_.dead(victim)) return victim;
    if (!wins(candidate, victim)) return candidate;
    promote(candidate);
    return victim;
  }

  // Oldest first, window then main; 0 at the end. For walks under the shard's lock.
  Id first() const { return window_.head != 0 ? window_.head : main_.head; }
  Id next(Id id) const {
    const auto& links = nodes_.links(id);
    return links.next != 0 || links.queue == Queue::main ? links.next : main_.head;
  }

  std::uint64_t weight() const { return window_.weight + main_.weight; }
  std::uint64_t window_weight() const { return window_.weight; }
  std::size_t entries() const { return window_.entries + main_.entries; }
  std::size_t memory_bytes() const { return ghost_.memory_bytes(); }

  // After an entry's weight was changed in place.
  void reweigh(Id id, std::uint64_t before, std::uint64_t after) {
    (nodes_.links(id).queue == Queue::window ? window_ : main_).weight += after - before;
  }

 private:
  static constexpr int kMostSkips = 64;     // marked entries that one turn of a clock passes
  static constexpr int kMostMoves = 3;      // from the window to the main space in one call
  static constexpr unsigned kFrequent = 6;  // from here on chance may help
  static constexpr std::uint64_t kChanceOneIn = 128;
  static constexpr std::uint64_t kStepEntries = 2;  // that the window grows or shrinks by, a miss

  struct Ends {
    Id head = 0, tail = 0;
    std::uint64_t weight = 0;
    std::size_t entries = 0;
  };

  void push(Ends& ends, Queue queue, Id id) {
    auto& links = nodes_.links(id);
    links.queue = queue;
    links.next = 0;
    links.previous = ends.tail;
    (ends.tail != 0 ? nodes_.links(ends.tail).next : ends.head) = id;
    ends.tail = id;
    ends.weight += nodes_.weight(id);
    ++ends.entries;
  }

  void pop(Ends& ends, Id id) {
    const auto& links = nodes_.links(id);
    (links.previous != 0 ? nodes_.links(links.previous).next : ends.head) = links.next;
    (links.next != 0 ? nodes_.links(links.next).previous : ends.tail) = links.previous;
    ends.weight -= nodes_.weight(id);
    --ends.entries;
  }

  void to_end(Ends& ends, Queue queue, Id id) {
    if (id == ends.tail) return;
    pop(ends, id);
    push(ends, queue, id);
  }

  void promote(Id id) {
    pop(window_, id);
    nodes_.links(id).stamp = ghost_.now();
    push(main_, Queue::main, id);
  }

  Id window_candidate() {
    for (int skips = 0; skips < kMostSkips; ++skips) {
      const Id id = window_.head;
      const unsigned mark = nodes_.mark(id);
      if (mark == 0 || nodes_.dead(id)) break;
      frequency_.add(nodes_.links(id).hash, mark);
      nodes_.set_mark(id, 0);
      to_end(window_, Queue::window, id);
    }
    return window_.head;
  }

  Id main_victim() {
    for (int skips = 0; skips < kMostSkips && main_.head != 0; ++skips) {
      const Id id = main_.head;
      const unsigned mark = nodes_.mark(id);
      if (mark == 0 || nodes_.dead(id)) break;
      auto& links = nodes_.links(id);
      frequency_.add(links.hash, 1);
      links.stamp = ghost_.now();
      nodes_.set_mark(id, mark - 1);
      to_end(main_, Queue::main, id);
    }
    return main_.head;
  }

  bool wins(Id candidate, Id victim) {
    const auto& challenger = nodes_.links(candidate);
    const auto& holder = nodes_.links(victim);
    const unsigned frequency = frequency_.estimate(challenger.hash);
    if (frequency > frequency_.estimate(holder.hash) + 1) return true;
    if (frequency >= kFrequent && mix64(++chance_) % kChanceOneIn == 0) return true;
    return choice_.by_recency && ghost_.newer(challenger.stamp, holder.stamp);
  }

  std::uint64_t mean_weight() const {
    return entries() == 0 ? 1 : std::max<std::uint64_t>(1, weight() / entries());
  }
  std::uint64_t goal() const {
    return std::max(mean_weight(),
                    static_cast<std::uint64_t>(choice_.window * static_cast<double>(capacity_)));
  }
  void approach_goal() {
    const std::uint64_t to = goal(), step = kStepEntries * mean_weight();
    if (window_target_ < to) {
      window_target_ = std::min(to, window_target_ + step);
    } else {
      window_target_ = std::max(to, window_target_ - std::min(window_target_, step));
    }
  }

  Nodes& nodes_;
  Frequency& frequency_;
  MissGhost ghost_;
  Ends window_, main_;
  std::uint64_t capacity_ = 1, window_target_ = 1;
  PolicyChoice choice_;
  std::uint64_t chance_ = 0;
};

}  // namespace weir::cache::detail

// TopK: the k best of a stream, in memory for k.
//
// A small-top heap: the worst of the kept ones lies on top, so that a newcomer is compared with that one
// alone and most of a long stream is turned away after a single comparison. `offer` is O(1) for what is not
// kept and O(log k) for what is; n items in random order cost O(n + k log k log n). Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace weir::ranking {

// Better(a, b) tells whether a ranks before b. It must be a strict order that leaves no ties (by score, then
// by id, say): then the result doesn't depend on the order in which things are offered.
template <class T, class Better>
class TopK {
 public:
  explicit TopK(std::size_t k, Better better = {}) : k_(k), better_(std::move(better)) { kept_.reserve(k); }

  // Whether it is among the k best so far.
  bool offer(T item) {
    if (kept_.size() < k_) {
      kept_.push_back(std::move(item));
      std::push_heap(kept_.begin(), kept_.end(), better_);
      return true;
    }
    if (k_ == 0 || !better_(item, kept_.front())) return false;
    std::pop_heap(kept_.begin(), kept_.end(), better_);
    kept_.back() = std::move(item);
    std::push_heap(kept_.begin(), kept_.end(), better_);
    return true;
  }

  std::size_t size() const { return kept_.size(); }
  bool full() const { return kept_.size() == k_; }
  // The worst of those kept; null when nothing is.
  const T* worst() const { return kept_.empty() ? nullptr : &kept_.front(); }

  // The best first; nothing is kept afterwards.
  std::vector<T> take() {
    std::sort_heap(kept_.begin(), kept_.end(), better_);
    return std::exchange(kept_, {});
  }

 private:
  std::size_t k_;
  Better better_;
  std::vector<T> kept_;  // a heap whose top is the worst
};

}  // namespace weir::ranking

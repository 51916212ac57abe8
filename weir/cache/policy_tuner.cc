#include "weir/cache/policy_tuner.h"

#include <algorithm>
#include <bit>
#include <new>

#include "weir/base/hash.h"

namespace weir::cache::detail {

ShadowCache::ShadowCache(std::size_t capacity, PolicyChoice choice, FrequencySketch& frequency,
                         std::uint64_t seed)
    : capacity_(std::clamp<std::size_t>(capacity, 1, kMostEntries)),
      nodes_{std::make_unique<Node[]>(capacity_ + 1)},
      frequency_{frequency},
      index_(std::make_unique<Id[]>(std::bit_ceil(capacity_ + capacity_ / 4 + 1))),
      index_mask_(std::bit_ceil(capacity_ + capacity_ / 4 + 1) - 1),
      policy_(nodes_, frequency_) {
  policy_.set_seed(seed);
  policy_.set_capacity(capacity_, capacity_);
  policy_.choose(choice);
  policy_.jump_to_choice();
}

std::size_t ShadowCache::place_of(std::uint32_t hash) const {
  std::size_t at = mix64(hash) & index_mask_;
  while (index_[at] != 0 && nodes_.all[index_[at]].hash != hash) at = (at + 1) & index_mask_;
  return at;
}

bool ShadowCache::access(std::uint32_t hash) {
  if (const Id id = index_[place_of(hash)]; id != 0) {
    Node& node = nodes_.all[id];
    if (node.mark < ClockPolicy<Nodes, Shared>::kMostMarks) ++node.mark;
    return true;
  }
  Id id = 0;
  if (policy_.entries() < capacity_) {
    id = ++last_used_;
  } else {
    id = policy_.victim(1);
    drop(id);
  }
  nodes_.all[id] = {};
  nodes_.all[id].hash = hash;
  index_[place_of(hash)] = id;
  policy_.add(id);
  return false;
}

// Those behind it in its cluster move up, so that look-ups may end at the first empty place.
void ShadowCache::drop(Id id) {
  policy_.remove(id);
  std::size_t hole = place_of(nodes_.all[id].hash);
  for (std::size_t at = (hole + 1) & index_mask_; index_[at] != 0; at = (at + 1) & index_mask_) {
    const std::size_t home = mix64(nodes_.all[index_[at]].hash) & index_mask_;
    if (((at - home) & index_mask_) < ((at - hole) & index_mask_)) continue;
    index_[hole] = index_[at];
    hole = at;
  }
  index_[hole] = 0;
}

void PolicyTuner::feed(std::uint64_t hash, std::size_t entries, bool may_build) noexcept {
  if (busy_.exchange(true, std::memory_order_acquire)) return;
  struct Done {
    std::atomic<bool>& busy;
    ~Done() { busy.store(false, std::memory_order_release); }
  };
  const Done done{busy_};
  // An estimate wanders while a cache fills; only a real change is worth new shadows.
  if (may_build && (entries > 2 * entries_ || 2 * entries < entries_)) {
    try {
      make_shadows(entries);
    } catch (const std::bad_alloc&) {
      for (auto& shadow : shadows_) shadow.reset();
      entries_ = 0;  // the next put tries again
    }
  }
  if (entries_ == 0) return;
  const auto key = static_cast<std::uint32_t>(hash);
  frequency_.add(key);
  for (std::size_t i = 0; i < shadows_.size(); ++i)
    if (shadows_[i]->access(key)) scores_[i] += 1;
  if (++feeds_ % kEpoch == 0) compare();
}

void PolicyTuner::make_shadows(std::size_t entries) {
  entries_ = std::max<std::size_t>(1, entries);
  unsigned shift = 0;
  while ((entries_ >> shift) > ShadowCache::kMostEntries) ++shift;
  sample_mask_.store((std::uint64_t{1} << shift) - 1, std::memory_order_relaxed);
  const std::size_t each = entries_ >> shift;
  frequency_ = FrequencySketch();
  frequency_.resize(each);
  for (std::size_t i = 0; i < shadows_.size(); ++i)
    shadows_[i] = std::make_unique<ShadowCache>(each, kChoices[i], frequency_, seed_ + i);
  scores_ = {};
}

void PolicyTuner::compare() {
  const std::size_t now = chosen_.load(std::memory_order_relaxed);
  const auto best = static_cast<std::size_t>(std::ranges::max_element(scores_) - scores_.begin());
  if (scores_[best] > scores_[now] * kMargin)
    chosen_.store(static_cast<std::uint32_t>(best), std::memory_order_relaxed);
  for (double& score : scores_) score *= kDecay;
}

}  // namespace weir::cache::detail

#include "weir/filter/rebuildable_bloom_filter.h"

#include <utility>

namespace weir::filter {

RebuildableBloomFilter::RebuildableBloomFilter(std::uint64_t expected, double rate, std::uint64_t hashing)
    : RebuildableBloomFilter(std::make_unique<GrowingBloomFilter>(expected, rate, hashing)) {}

RebuildableBloomFilter::RebuildableBloomFilter(std::unique_ptr<GrowingBloomFilter> filter)
    : living_(std::move(filter)), states_{State{living_.get(), nullptr}, {}}, state_(&states_[0]) {}

void RebuildableBloomFilter::insert(std::uint64_t hash) {
  read([hash](const State& state) {
    state.living->insert(hash);
    if (state.rising != nullptr) state.rising->insert(hash);
  });
}

bool RebuildableBloomFilter::may_contain(std::uint64_t hash) const {
  return read([hash](const State& state) { return state.living->may_contain(hash); });
}

void RebuildableBloomFilter::replace(State next) {
  State& other = state_.load() == &states_[0] ? states_[1] : states_[0];
  other = next;
  state_.store(&other);
  gate_.wait_for_readers();
}

std::optional<RebuildableBloomFilter::Rebuild> RebuildableBloomFilter::rebuild(std::uint64_t expected,
                                                                               double rate) {
  if (rebuilding_.exchange(true)) return std::nullopt;
  try {
    rising_ = std::make_unique<GrowingBloomFilter>(expected, rate, living_->hashing());
  } catch (...) {
    rebuilding_ = false;
    throw;
  }
  replace({living_.get(), rising_.get()});
  return Rebuild(*this);
}

void RebuildableBloomFilter::finish(bool commit) {
  if (commit) std::swap(living_, rising_);
  replace({living_.get(), nullptr});
  rising_.reset();
  rebuilding_ = false;
}

void RebuildableBloomFilter::save(const std::filesystem::path& file) const {
  read([&file](const State& state) { state.living->save(file); });
}

Statistics RebuildableBloomFilter::statistics() const {
  return read([](const State& state) { return state.living->statistics(); });
}

std::uint64_t RebuildableBloomFilter::bytes() const {
  return read([](const State& state) {
    return state.living->bytes() + (state.rising != nullptr ? state.rising->bytes() : 0);
  });
}

std::uint64_t RebuildableBloomFilter::inserted() const {
  return read([](const State& state) { return state.living->inserted(); });
}

int RebuildableBloomFilter::stages() const {
  return read([](const State& state) { return state.living->stages(); });
}

}  // namespace weir::filter

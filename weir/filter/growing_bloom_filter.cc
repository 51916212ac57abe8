#include "weir/filter/growing_bloom_filter.h"

#include <bit>
#include <new>
#include <numbers>
#include <string>

#include "weir/base/fault.h"
#include "weir/base/saved_file.h"

namespace weir::filter {
namespace {

// The saved form, version 1: "weirgrow" | version | stages | rate, the bits of a double | keys inserted |
// hashing | XXH3 of these 48 bytes; then each stage as a BloomFilter of its own, the oldest first.
constexpr std::string_view kMagic = "weirgrow";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMostExpected = std::uint64_t{1} << 57;  // in a stage: twice that is a number, too

}  // namespace

GrowingBloomFilter::GrowingBloomFilter(std::uint64_t expected, double rate, std::uint64_t hashing)
    : GrowingBloomFilter(Start{rate, hashing}) {
  append(std::make_unique<BloomFilter>(expected, rate_of(0), hashing_));
}

GrowingBloomFilter::~GrowingBloomFilter() {
  for (auto& filter : filters_) delete filter.load();
}

double GrowingBloomFilter::rate_of(int stage) const {
  constexpr double kSumOfSquares = std::numbers::pi * std::numbers::pi / 6;  // 1 + 1/4 + 1/9 + ..
  return rate_ / kSumOfSquares / ((stage + 1.0) * (stage + 1.0));
}

void GrowingBloomFilter::append(std::unique_ptr<BloomFilter> filter) {
  const int stages = stages_.load(std::memory_order_relaxed);
  room_.fetch_add(filter->expected(), std::memory_order_relaxed);
  filters_[static_cast<std::size_t>(stages)].store(filter.release(), std::memory_order_release);
  stages_.store(stages + 1, std::memory_order_release);
}

void GrowingBloomFilter::insert(std::uint64_t hash) {
  const int stages = this->stages();
  for (int older = stages - 2; older >= 0; --older)
    if (stage(older).may_contain(hash)) return;
  const bool is_new =
      filters_[static_cast<std::size_t>(stages - 1)].load(std::memory_order_acquire)->insert(hash);
  const std::uint64_t inserted =
      is_new ? inserted_.fetch_add(1, std::memory_order_relaxed) + 1 : this->inserted();
  if (inserted >= room_.load(std::memory_order_relaxed)) grow(stages);
}

bool GrowingBloomFilter::may_contain(std::uint64_t hash) const {
  // The newest first: it holds most of the keys.
  for (int index = stages() - 1; index >= 0; --index)
    if (stage(index).may_contain(hash)) return true;
  return false;
}

void GrowingBloomFilter::grow(int seen_stages) {
  const std::lock_guard lock(growing_);
  const int stages = stages_.load(std::memory_order_relaxed);
  if (stages != seen_stages || stages == kMaxStages) return;  // mostly, somebody else was first
  const std::uint64_t newest = stage(stages - 1).expected();
  try {
    append(std::make_unique<BloomFilter>(2 * newest, rate_of(stages), hashing_));
  } catch (const std::bad_alloc&) {
    room_.fetch_add(newest / 8 + 1, std::memory_order_relaxed);  // so that not each insert tries in vain
  }
}

std::uint64_t GrowingBloomFilter::bytes() const {
  std::uint64_t sum = 0;
  for (int index = stages() - 1; index >= 0; --index) sum += stage(index).bytes();
  return sum;
}

Statistics GrowingBloomFilter::statistics() const {
  Statistics all;
  double denied = 1;  // the share of strangers that each stage denies
  for (int index = stages() - 1; index >= 0; --index) {
    const Statistics one = stage(index).statistics();
    const auto bytes = static_cast<double>(all.bytes), more = static_cast<double>(one.bytes);
    all.fill = (all.fill * bytes + one.fill * more) / (bytes + more);
    all.bytes += one.bytes;
    all.keys += one.keys;
    denied *= 1 - one.rate;
  }
  all.rate = 1 - denied;
  return all;
}

void GrowingBloomFilter::write(Sink& sink) const {
  const int stages = this->stages();
  const std::array<std::uint64_t, 4> header{static_cast<std::uint64_t>(stages),
                                            std::bit_cast<std::uint64_t>(rate_), inserted(), hashing_};
  write_header(sink, kMagic, kVersion, header);
  for (int index = 0; index < stages; ++index) stage(index).write(sink);
}

std::unique_ptr<GrowingBloomFilter> GrowingBloomFilter::read(Source& source) {
  std::array<std::uint64_t, 4> header{};
  read_header(source, kMagic, kVersion, header);
  const auto [stages, rate_bits, inserted, hashing] = header;
  const auto rate = std::bit_cast<double>(rate_bits);
  if (stages < 1 || stages > kMaxStages || !(rate > 0 && rate < 1))
    throw Unusable("the header is damaged: " + std::to_string(stages) + " stages, a rate of " +
                   std::to_string(rate));
  std::unique_ptr<GrowingBloomFilter> filter(new GrowingBloomFilter(Start{rate, hashing}));
  std::uint64_t expected = 0;
  for (int index = 0; index < static_cast<int>(stages); ++index) {
    auto next = std::make_unique<BloomFilter>(BloomFilter::read(source));
    if (next->hashing() != hashing || (index > 0 && next->expected() != 2 * expected))
      throw Unusable("stage " + std::to_string(index) + " belongs to another filter");
    expected = next->expected();
    if (expected > kMostExpected) throw Unusable("stage " + std::to_string(index) + " can't be so large");
    filter->append(std::move(next));
  }
  filter->inserted_ = inserted;
  return filter;
}

std::string GrowingBloomFilter::encode() const {
  std::string bytes;
  MemorySink sink(bytes);
  write(sink);
  return bytes;
}

std::unique_ptr<GrowingBloomFilter> GrowingBloomFilter::decode(std::string_view bytes) {
  MemorySource source(bytes);
  auto filter = read(source);
  if (source.left() > 0) throw Unusable("something follows it");
  return filter;
}

void GrowingBloomFilter::save(const std::filesystem::path& file) const {
  replace_file(file, [this](Sink& sink) { write(sink); });
}

std::unique_ptr<GrowingBloomFilter> GrowingBloomFilter::load(const std::filesystem::path& file) {
  std::unique_ptr<GrowingBloomFilter> filter;
  read_file(file, [&](Source& source) { filter = read(source); });
  return filter;
}

}  // namespace weir::filter

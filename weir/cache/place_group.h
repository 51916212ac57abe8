// Comparing eight places of a SlotIndex at once, without a branch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__) && (defined(__GNUC__) || defined(__clang__))
#define WEIR_PLACES_BY_SSE2 1
#include <emmintrin.h>
#endif

// The thread sanitizer should see the loads.
#if defined(__SANITIZE_THREAD__)
#undef WEIR_PLACES_BY_SSE2
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef WEIR_PLACES_BY_SSE2
#endif
#endif

// The path of a hit is one function: as several it would cost twice as much.
#if defined(__GNUC__) || defined(__clang__)
#define WEIR_HOT [[gnu::always_inline]] inline
#define WEIR_HOT_LAMBDA __attribute__((always_inline))
#else
#define WEIR_HOT inline
#define WEIR_HOT_LAMBDA
#endif

namespace weir::cache::detail {

inline constexpr std::size_t kPlacesCompared = 8;

// Which of the places have the masked bits that are asked for, and whether one is free (zero). The second is
// worked out only when it is wanted: a hit doesn't.
class PlaceGroup {
 public:
  explicit PlaceGroup(const std::atomic<std::uint32_t>* places);
  unsigned same(std::uint32_t bits, std::uint32_t mask) const;  // a bit for each
  bool has_free() const { return same(0, ~std::uint32_t{0}) != 0; }

 private:
#ifdef WEIR_PLACES_BY_SSE2
  __m128i low_, high_;
#else
  std::uint32_t words_[kPlacesCompared];
#endif
};

#ifdef WEIR_PLACES_BY_SSE2
// Each lane is an aligned word, and those are loaded whole, in the order of the program. By assembly, since to
// the compiler a vector's load is no atomic one.
WEIR_HOT PlaceGroup::PlaceGroup(const std::atomic<std::uint32_t>* places) {
  asm volatile("movdqu %1, %0" : "=x"(low_) : "m"(*reinterpret_cast<const char(*)[16]>(places)));
  asm volatile("movdqu %1, %0" : "=x"(high_) : "m"(*reinterpret_cast<const char(*)[16]>(places + 4)));
}
WEIR_HOT unsigned PlaceGroup::same(std::uint32_t bits, std::uint32_t mask) const {
  const __m128i want = _mm_set1_epi32(static_cast<int>(bits)), care = _mm_set1_epi32(static_cast<int>(mask));
  const __m128i low = _mm_cmpeq_epi32(_mm_and_si128(low_, care), want);
  const __m128i high = _mm_cmpeq_epi32(_mm_and_si128(high_, care), want);
  const __m128i both = _mm_packs_epi32(low, high);
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(both, _mm_setzero_si128())));
}
#else
inline PlaceGroup::PlaceGroup(const std::atomic<std::uint32_t>* places) {
  for (std::size_t i = 0; i < kPlacesCompared; ++i) words_[i] = places[i].load(std::memory_order_acquire);
}
inline unsigned PlaceGroup::same(std::uint32_t bits, std::uint32_t mask) const {
  unsigned same = 0;
  for (unsigned i = 0; i < kPlacesCompared; ++i)
    same |= static_cast<unsigned>((words_[i] & mask) == bits) << i;
  return same;
}
#endif

}  // namespace weir::cache::detail

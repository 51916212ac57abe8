#include "site/pages/render_arena.h"

#include <algorithm>
#include <cstring>

namespace weir::site::pages {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;  // bytes; larger allocations get a block of their own
constexpr std::size_t kAlign = alignof(std::max_align_t);
constexpr unsigned kLookEvery = 32;  // allocations between two looks at the clock

thread_local RenderArena* t_arena = nullptr;

// Before each allocation stands its size, for realloc.
struct alignas(kAlign) Head {
  std::size_t size;
};

Head* head_of(void* memory) {
  return static_cast<Head*>(memory) - 1;
}

}  // namespace

RenderArena::RenderArena(std::size_t max_bytes, std::chrono::milliseconds max_time, const Clock& clock)
    : max_bytes_(max_bytes), clock_(clock), deadline_(clock.steady_now() + max_time) {
  t_arena = this;
}

RenderArena::~RenderArena() {
  t_arena = nullptr;
}

cmark_mem* RenderArena::mem() {
  static cmark_mem functions{calloc_here, realloc_here, free_here};
  return &functions;
}

bool RenderArena::guarded(void (*step)(void*), void* context) {
  limited_ = true;
  const bool done = setjmp(out_) == 0;  // NOLINT(cert-err52-cpp): no frame of C++ lies between
  if (done) step(context);
  limited_ = false;
  return done;
}

void RenderArena::check_budget(std::size_t size) {
  total_ += size;
  if (!limited_) return;
  bool spent = total_ > max_bytes_;
  if (until_look_-- == 0) {
    until_look_ = kLookEvery;
    spent = spent || clock_.steady_now() > deadline_;
  }
  if (spent) std::longjmp(out_, 1);  // NOLINT(cert-err52-cpp)
}

void* RenderArena::allocate(std::size_t size) {
  const auto needed = sizeof(Head) + (size + kAlign - 1) / kAlign * kAlign;
  check_budget(needed);
  if (needed > left_) {
    const auto block = std::max(needed, kBlock);
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
    // What is left of the block before is given up, unless the new one is for this allocation alone.
    if (block == kBlock) {
      next_ = blocks_.back().get();
      left_ = block;
    } else {
      auto* head = new (blocks_.back().get()) Head{size};
      return head + 1;
    }
  }
  auto* head = new (next_) Head{size};
  next_ += needed;
  left_ -= needed;
  return head + 1;
}

void* RenderArena::calloc_here(std::size_t count, std::size_t size) {
  auto* memory = t_arena->allocate(count * size);
  return std::memset(memory, 0, count * size);
}

void* RenderArena::realloc_here(void* old, std::size_t size) {
  if (old && head_of(old)->size >= size) return old;
  auto* memory = t_arena->allocate(size);
  return old ? std::memcpy(memory, old, head_of(old)->size) : memory;
}

void RenderArena::free_here(void*) {
  // Goes with the arena.
}

}  // namespace weir::site::pages

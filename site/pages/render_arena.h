// RenderArena: the memory that cmark-gfm works in, with a budget of bytes and of time.
//
// cmark has no way to stop: it calls abort() when it gets no memory and can't be cancelled. The arena gives
// it what it asks for and, when the budget is spent, leaves it by longjmp from inside the allocator. That is
// sound because between `guarded` and the allocator there are only frames of C, and because everything that
// cmark holds is in the arena, which goes as a whole.
//
// One arena per thread at a time. Not thread-safe.
#pragma once

#include <cmark-gfm.h>

#include <chrono>
#include <csetjmp>
#include <cstddef>
#include <memory>
#include <vector>

#include "weir/base/clock.h"

namespace weir::site::pages {

class RenderArena {
 public:
  RenderArena(std::size_t max_bytes, std::chrono::milliseconds max_time, const Clock& clock);
  ~RenderArena();
  RenderArena(const RenderArena&) = delete;
  RenderArena& operator=(const RenderArena&) = delete;

  // The allocator to hand to cmark, which uses this thread's arena.
  static cmark_mem* mem();

  // Runs step(context) within the budget; false when that was spent, and then nothing of cmark's may be used
  // any more. The step must call C only and own nothing that needs a destructor. Outside of it allocations
  // have no limit.
  bool guarded(void (*step)(void*), void* context);

 private:
  static void* calloc_here(std::size_t count, std::size_t size);
  static void* realloc_here(void* old, std::size_t size);
  static void free_here(void* memory);

  void* allocate(std::size_t size);
  void check_budget(std::size_t size);

  const std::size_t max_bytes_;
  const Clock& clock_;
  const SteadyTime deadline_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t total_ = 0;
  unsigned until_look_ = 0;
  bool limited_ = false;
  std::jmp_buf out_;
};

}  // namespace weir::site::pages

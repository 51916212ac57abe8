#include "weir/filter/zeroed_memory.h"

#include <cstring>
#include <limits>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace weir::filter {
namespace {

constexpr std::align_val_t kCacheLine{64};
// More than any machine maps; sums of sizes below it don't overflow.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 47;

#ifdef __linux__
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
constexpr std::uint64_t kMapFrom = 2 * kHugePage;  // below this, half of the last page could lie idle

bool is_mapped(std::uint64_t bytes) {
  return bytes >= kMapFrom;
}

// A mapping that begins where a huge page can: one that is too long, with both ends cut off.
void* map(std::uint64_t bytes) {
  const std::uint64_t wide = bytes + kHugePage;
  void* mapped = ::mmap(nullptr, wide, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(mapped);
  const std::uint64_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(first) % kHugePage) % kHugePage;
  if (head > 0) ::munmap(first, head);
  if (kHugePage > head) ::munmap(first + head + bytes, kHugePage - head);
  ::madvise(first + head, bytes, MADV_HUGEPAGE);  // a wish; small pages do, too
  return first + head;
}

void unmap(void* data, std::uint64_t bytes) {
  ::munmap(data, bytes);
}

std::uint64_t whole_pages(std::uint64_t bytes) {
  constexpr std::uint64_t kPage = 64U << 10;  // a multiple of every page size in use
  return (bytes + kPage - 1) / kPage * kPage;
}
#else
bool is_mapped(std::uint64_t) {
  return false;
}
void* map(std::uint64_t) {
  throw std::bad_alloc();
}
void unmap(void*, std::uint64_t) {}
std::uint64_t whole_pages(std::uint64_t bytes) {
  return bytes;
}
#endif

}  // namespace

ZeroedMemory::ZeroedMemory(std::uint64_t bytes) : data_(nullptr), bytes_(bytes) {
  // NOLINTNEXTLINE(misc-redundant-expression): not where addresses have 32 bits
  if (bytes > kMostBytes || bytes > std::numeric_limits<std::size_t>::max()) throw std::bad_alloc();
  if (is_mapped(bytes)) {
    data_ = map(whole_pages(bytes));
  } else {
    data_ = ::operator new(static_cast<std::size_t>(bytes), kCacheLine);
    std::memset(data_, 0, static_cast<std::size_t>(bytes));
  }
}

ZeroedMemory::~ZeroedMemory() {
  if (data_ == nullptr) return;
  if (is_mapped(bytes_)) {
    unmap(data_, whole_pages(bytes_));
  } else {
    ::operator delete(data_, kCacheLine);
  }
}

}  // namespace weir::filter

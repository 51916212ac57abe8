// Whatever the bytes, the reader of saved caches refuses them, stops at the damage, or reads what can be written
// again; it takes no more memory than there are bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/fault.h"
#include "weir/base/hash.h"
#include "weir/base/saved_file.h"
#include "weir/base/saved_file_fixture.h"
#include "weir/cache/cache_file.h"

namespace {

using weir::must;
using weir::overwrite_number;

constexpr std::size_t kHeader = 40, kNumber = 8, kHead = 3 * kNumber;

// Makes the checksums right, else hardly an input would come past them.
std::string with_checksums(std::string bytes) {
  if (bytes.size() < kHeader) return bytes;
  overwrite_number(bytes, kHeader - kNumber,
                   weir::hash64(std::string_view(bytes).substr(0, kHeader - kNumber)));
  std::uint64_t checksum = 0;
  for (std::size_t at = kHeader; at + kHead <= bytes.size();) {
    const std::uint64_t entries = weir::number_at(bytes, at), size = weir::number_at(bytes, at + kNumber);
    if (entries == 0) {
      overwrite_number(bytes, at + 2 * kNumber,
                       weir::hash64(std::string_view(bytes).substr(at + kNumber, kNumber), checksum));
      break;
    }
    if (size > bytes.size() - at - kHead) break;
    checksum = weir::hash64(std::string_view(bytes).substr(at + kHead, size), checksum);
    overwrite_number(bytes, at + 2 * kNumber, checksum);
    at += kHead + size;
  }
  return bytes;
}

void read(const std::string& bytes) {
  weir::MemorySource source(bytes);
  std::string again;
  weir::MemorySink sink(again);
  try {
    weir::cache::detail::CacheFileReader reader(source, 1);
    weir::cache::detail::CacheFileWriter writer(sink, 1, reader.saved_at());
    std::size_t taken = 0;
    while (const auto record = reader.next()) {
      taken += record->key.size() + (record->value ? record->value->size() : 0);
      must(taken <= bytes.size());
      writer.add(*record);
    }
    must(!reader.next());
    writer.finish();
    if (!reader.whole()) return;
    weir::MemorySource second(again);
    weir::cache::detail::CacheFileReader reread(second, 1);
    std::uint64_t entries = 0;
    while (reread.next()) ++entries;
    must(reread.whole() && entries == writer.entries());
  } catch (const weir::Unusable&) {
    // Refused.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  read(with_checksums(bytes));
  // Behind a right header, so that the blocks are reached from the first byte on.
  std::string headed;
  weir::MemorySink sink(headed);
  const weir::cache::detail::CacheFileWriter writer(sink, 1, weir::WallTime());
  read(with_checksums(headed + bytes));
  return 0;
}

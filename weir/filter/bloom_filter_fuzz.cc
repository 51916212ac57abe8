// Whatever the bytes, the loaders refuse them, or they are a filter's and can be written again just as they were.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/fault.h"
#include "weir/base/hash.h"
#include "weir/base/saved_file.h"
#include "weir/base/saved_file_fixture.h"
#include "weir/filter/growing_bloom_filter.h"

namespace {

using weir::must;
using weir::overwrite_number;
using weir::filter::BloomFilter;
using weir::filter::GrowingBloomFilter;

constexpr std::size_t kHeader = 56;  // of either kind, with its checksum, which is the last eight of them
constexpr std::size_t kChecksum = 8;

// Makes the checksums right, else hardly an input would come past them. (The blocks are fewer than a piece.)
std::string with_checksums(std::string bytes, std::size_t at) {
  if (bytes.size() < at + kHeader + kChecksum) return bytes;
  const std::string_view all(bytes);
  const std::size_t end = bytes.size() - kChecksum;
  const std::uint64_t header = weir::hash64(all.substr(at, kHeader - kChecksum));
  const std::uint64_t blocks = weir::hash64(all.substr(at + kHeader, end - at - kHeader));
  overwrite_number(bytes, at + kHeader - kChecksum, header);
  overwrite_number(bytes, end, blocks);
  return bytes;
}

// A filter that was believed also works.
template <class Filter>
void exercise(Filter& filter) {
  for (std::uint64_t i = 0; i < 8; ++i) {
    filter.insert(weir::mix64(i));
    must(filter.may_contain(weir::mix64(i)));
  }
  must(filter.statistics().fill <= 1);
}

void try_fixed(const std::string& bytes) {
  try {
    BloomFilter filter = BloomFilter::decode(bytes);
    must(filter.encode() == bytes);
    exercise(filter);
  } catch (const weir::Unusable&) {
    // Refused.
  }
}

void try_growing(const std::string& bytes) {
  try {
    const auto filter = GrowingBloomFilter::decode(bytes);
    must(filter->encode() == bytes);
    exercise(*filter);
  } catch (const weir::Unusable&) {
    // Refused.
  }
}

// The eight letters and the version are the format's own: nothing is learnt from guessing them.
std::string as(std::string_view magic, std::string bytes, std::size_t at) {
  std::string begin(magic);
  weir::append_number(begin, 1);
  if (bytes.size() >= at + begin.size()) bytes.replace(at, begin.size(), begin);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try_fixed(bytes);
  try_growing(bytes);
  try_fixed(with_checksums(as("weirblom", bytes, 0), 0));
  // One stage, which begins after the header.
  std::string growing = with_checksums(as("weirblom", as("weirgrow", bytes, 0), kHeader), kHeader);
  if (growing.size() >= kHeader) {
    const std::uint64_t header = weir::hash64(std::string_view(growing).substr(0, kHeader - kChecksum));
    overwrite_number(growing, kHeader - kChecksum, header);
  }
  try_growing(growing);
  return 0;
}

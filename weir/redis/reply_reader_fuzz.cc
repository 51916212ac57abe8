// Whatever the bytes and wherever they are cut: the reader gives the same replies and the same verdict, each reply
// is the one that its bytes say, it holds no more memory than its limit allows, and once it has refused it goes on
// refusing.
//
// An input: three bytes that choose the limit, the cuts, and how often the rest is repeated (so that a reply also
// crosses what the reader takes at a time); then what the peer sends.
#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/random.h"
#include "weir/redis/reply_reader.h"

namespace {

using weir::redis::ProtocolError;
using weir::redis::Reply;
using weir::redis::ReplyReader;

constexpr std::size_t kHeader = 3;
constexpr std::size_t kMostBytes = std::size_t{20} << 10;

void must(bool holds) {
  if (!holds) std::abort();
}

// Bytes of this process's allocations, and the most since the last look.
std::atomic<std::int64_t> allocated{0}, most_allocated{0};

void on_malloc(const volatile void* block, std::size_t) {
  const auto bytes =
      static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(block)));
  const std::int64_t now = allocated.fetch_add(bytes) + bytes;
  if (now > most_allocated.load()) most_allocated.store(now);
}

void on_free(const volatile void* block) {
  if (block == nullptr) return;
  allocated -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(block)));
}

// The protocol's own words for a reply.
std::string encode(const Reply& reply) {
  const auto line = [](char kind, std::string_view text) { return kind + std::string(text) + "\r\n"; };
  switch (reply.kind()) {
    case Reply::Kind::nil:
      return "$-1\r\n";
    case Reply::Kind::integer:
      return line(':', std::to_string(reply.integer()));
    case Reply::Kind::status:
      return line('+', reply.text());
    case Reply::Kind::error:
      return line('-', reply.error_text());
    case Reply::Kind::text:
      return line('$', std::to_string(reply.text().size())) + reply.text() + "\r\n";
    case Reply::Kind::array:
      break;
  }
  std::string all = line('*', std::to_string(reply.array().size()));
  for (const Reply& element : reply.array()) all += encode(element);
  return all;
}

struct Outcome {
  std::vector<Reply> replies;
  bool refused = false;
  bool operator==(const Outcome&) const = default;
};

// next() -> bytes of the next piece.
template <class Next>
Outcome read(std::string_view bytes, std::size_t limit, Next next) {
  Outcome outcome;
  ReplyReader reader(limit);
  const auto take = [&](Reply&& reply) { outcome.replies.push_back(std::move(reply)); };
  try {
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, next());
      bytes.remove_prefix(piece.size());
      reader.feed(piece, take);
    }
  } catch (const ProtocolError&) {
    outcome.refused = true;
  }
  if (!outcome.refused) return outcome;
  const std::size_t count = outcome.replies.size();
  try {
    reader.feed("+OK\r\n", take);
    must(false);
  } catch (const ProtocolError&) {
    must(outcome.replies.size() == count);
  }
  return outcome;
}

// The buffer doubles as it grows, and so do arrays, which are in two places while they move.
void check_memory(std::string_view bytes, std::size_t limit) {
  constexpr std::int64_t kFixed = std::int64_t{96} << 10;
  const std::int64_t before = allocated;
  most_allocated = before;
  try {
    ReplyReader reader(limit);
    reader.feed(bytes, [](Reply&&) {});
  } catch (const ProtocolError&) {
    // Refused.
  }
  must(most_allocated - before <= 5 * static_cast<std::int64_t>(limit) + kFixed);
  must(allocated - before <= 0);
}

std::string repeated(std::string_view bytes, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times && all.size() + bytes.size() <= kMostBytes; ++i) all += bytes;
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  must(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) != 0);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kHeader) return 0;
  const std::size_t limit = std::size_t{1} << (data[0] % 18);
  const std::size_t longest_piece = std::size_t{1} << (data[1] % 16);
  const std::string_view tail(reinterpret_cast<const char*>(data) + kHeader, size - kHeader);
  const std::string bytes = repeated(tail, std::size_t{1} << (data[2] % 10));

  const Outcome whole = read(bytes, limit, [&] { return bytes.size(); });
  weir::Random random(data[1]);
  must(read(bytes, limit, [&] { return 1 + random.below(longest_piece); }) == whole);
  if (bytes.size() <= 1024) must(read(bytes, limit, [] { return 1; }) == whole);

  std::string again;
  for (const Reply& reply : whole.replies) again += encode(reply);
  must(read(again, limit, [&] { return again.size(); }) == Outcome{whole.replies, false});
  check_memory(bytes, limit);
  return 0;
}

// ReplyReader: takes bytes as they come and gives the replies in them. hiredis' reader does the parsing; the
// values are built in place.
//
// Damaged bytes are refused, never believed: the replies before the damage come, then a ProtocolError, and from
// then on nothing else; wherever the bytes are cut. What a hostile peer announces costs nothing until it is
// sent, and what it sends is bounded by `max_reply`, statuses and errors by 64 KiB.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "weir/redis/reply.h"

struct redisReader;

namespace weir::redis {

class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ReplyReader {
 public:
  // max_reply: bytes of one reply, at most 1 GiB (hiredis counts its buffer in an int); more is a
  // ProtocolError.
  explicit ReplyReader(std::size_t max_reply);
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;
  ~ReplyReader();

  // Calls take(Reply&&) for each reply that the bytes complete. Throws ProtocolError.
  template <class Take>
  void feed(std::string_view bytes, Take take) {
    // In slices: the parser moves what is left over after each KiB of replies to the front.
    while (!bytes.empty()) {
      const auto slice = bytes.substr(0, kSlice);
      bytes.remove_prefix(slice.size());
      push(slice);
      while (next()) take(std::move(root_));
    }
  }

 private:
  static constexpr std::size_t kSlice = std::size_t{16} << 10;
  struct Builder;
  struct Free {
    void operator()(redisReader* reader) const;
  };

  void push(std::string_view bytes);
  bool next();
  bool begun_too_large() const;

  std::size_t max_reply_;
  std::size_t built_ = 0;  // bytes of the reply that is being built
  bool too_large_ = false;
  Reply root_;
  std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace weir::redis

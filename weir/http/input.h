// Input: the bytes of a connection that have been received and not used up. For this folder's own use.
#pragma once

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace weir::http {

class Input {
 public:
  // Enough for the head of nearly every request; ten thousand idle connections take 40 MiB.
  static constexpr std::size_t kFirstCapacity = 4 << 10;
  // A larger buffer is given back between requests.
  static constexpr std::size_t kKeptCapacity = kFirstCapacity;

  std::string_view unread() const { return {bytes_.get() + begin_, end_ - begin_}; }
  std::size_t capacity() const { return capacity_; }

  // Room for at least `least` more bytes. May move what is unread.
  boost::asio::mutable_buffer room(std::size_t least) {
    if (capacity_ - end_ < least && begin_ > 0) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (capacity_ - end_ < least) resize(std::max({kFirstCapacity, end_ + least, 2 * capacity_}));
    return {bytes_.get() + end_, capacity_ - end_};
  }
  void received(std::size_t count) { end_ += count; }

  // Forgets the first bytes.
  void consume(std::size_t count) {
    begin_ += count;
    if (begin_ != end_) return;
    begin_ = end_ = 0;
    if (capacity_ > kKeptCapacity) {
      bytes_.reset();
      capacity_ = 0;
    }
  }
  // Forgets the bytes [from, to) of what is unread.
  void erase(std::size_t from, std::size_t to) {
    if (from == to) return;
    std::memmove(bytes_.get() + begin_ + from, bytes_.get() + begin_ + to, end_ - begin_ - to);
    end_ -= to - from;
  }

 private:
  void resize(std::size_t capacity) {
    std::unique_ptr<char[]> larger(new char[capacity]);  // not zeroed
    if (end_ > begin_) std::memcpy(larger.get(), bytes_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace weir::http

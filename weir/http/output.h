// Output: what is to be sent on a connection. Answers are put one behind the other into one flat text, so
// that the answers to pipelined requests leave in one write; a large body is not copied but sent from where
// it is. For this folder's own use.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "weir/http/response.h"

namespace weir::http {

class Output {
 public:
  // From this size on, copying a body costs more than a second buffer in the same system call.
  static constexpr std::size_t kLargeBody = 16 << 10;
  // A larger text is given back when it has been sent.
  static constexpr std::size_t kKeptCapacity = 8 << 10;

  std::string& text() { return text_; }
  // Appends the response's body, and takes a large one over.
  void append_body(Response& response) {
    const std::string_view payload = response.payload();
    if (payload.size() < kLargeBody) {
      text_ += payload;
      return;
    }
    shared_ = response.shared_body != nullptr;
    large_ = shared_ ? std::move(response.shared_body)
                     : std::make_shared<const std::string>(std::move(response.body));
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const { return text_.size() + (large_ ? large_->size() : 0) - sent_; }
  // What this connection alone keeps in memory; a body that others share is not counted.
  std::size_t memory() const { return text_.capacity() + (large_ && !shared_ ? large_->capacity() : 0); }
  // Nothing may be appended until it has been sent.
  bool full() const { return large_ != nullptr; }

  std::array<boost::asio::const_buffer, 2> buffers() const {
    const std::size_t of_large = sent_ > text_.size() ? sent_ - text_.size() : 0;
    const std::size_t of_text = sent_ - of_large;
    return {boost::asio::buffer(text_.data() + of_text, text_.size() - of_text),
            large_ ? boost::asio::buffer(large_->data() + of_large, large_->size() - of_large)
                   : boost::asio::const_buffer()};
  }
  // Forgets what has not been sent.
  void drop() {
    text_ = std::string();
    large_.reset();
    sent_ = 0;
  }
  void sent(std::size_t count) {
    sent_ += count;
    if (!empty()) return;
    sent_ = 0;
    large_.reset();
    text_.clear();
    if (text_.capacity() > kKeptCapacity) text_ = std::string();
  }

 private:
  std::string text_;
  std::shared_ptr<const std::string> large_;
  bool shared_ = false;  // the large body is others' too
  std::size_t sent_ = 0;
};

}  // namespace weir::http

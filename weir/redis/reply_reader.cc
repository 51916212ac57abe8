#include "weir/redis/reply_reader.h"

#include <hiredis/read.h>

#include <algorithm>
#include <new>
#include <utility>

namespace weir::redis {
namespace {

// An empty buffer larger than this is given back.
constexpr std::size_t kKeepBuffer = std::size_t{256} << 10;
constexpr std::size_t kLargestReply = std::size_t{1} << 30;
// Longer statuses, errors and numbers are nobody's: the parser looks through the whole of an unfinished line
// whenever more of it comes.
constexpr std::size_t kLongestLine = std::size_t{64} << 10;
// The length of a text and the line's end, with room for lengths that are refused.
constexpr std::size_t kLongestLength = 32;
constexpr char kTooLarge[] = "a reply is too large";
// The longest words around a text: "$1073741824\r\n" and "\r\n".
static_assert(sizeof(Reply) > 15);

}  // namespace

// hiredis' call-backs. A task knows its parent's object: the array that it belongs into. Arrays grow as their
// elements come, whatever they announce. Growing moves only finished siblings: an array that still waits for
// elements is the last of its parent's.
struct ReplyReader::Builder {
  static ReplyReader& self(const redisReadTask* task) { return *static_cast<ReplyReader*>(task->privdata); }

  // Never throws through C: null is "out of memory" to hiredis.
  template <class Make>
  static void* place(const redisReadTask* task, std::size_t bytes, Make make) noexcept {
    ReplyReader& reader = self(task);
    reader.built_ += sizeof(Reply) + bytes;
    if (reader.built_ > reader.max_reply_) {
      reader.too_large_ = true;
      return nullptr;
    }
    try {
      if (task->parent == nullptr) {
        reader.root_ = make();
        return &reader.root_;
      }
      auto& siblings = std::get<Reply::Array>(static_cast<Reply*>(task->parent->obj)->value_);
      return &siblings.emplace_back(make());
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  static void* create_string(const redisReadTask* task, char* text, std::size_t length) {
    if (task->type != REDIS_REPLY_STRING && length + 1 > kLongestLine) {
      self(task).too_large_ = true;
      return nullptr;
    }
    return place(task, length, [&] {
      const auto kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::error
                        : task->type == REDIS_REPLY_STATUS ? Reply::Kind::status
                                                           : Reply::Kind::text;
      return Reply(kind, std::string(text, length));
    });
  }
  static void* create_array(const redisReadTask* task, int) {
    return place(task, 0, [] { return Reply(Reply::Array()); });
  }
  static void* create_integer(const redisReadTask* task, long long value) {
    return place(task, 0, [&] { return Reply(static_cast<std::int64_t>(value)); });
  }
  static void* create_nil(const redisReadTask* task) {
    return place(task, 0, [] { return Reply(); });
  }
  static void free_object(void*) {}  // all of it belongs to the root

  static redisReplyObjectFunctions functions;
};

redisReplyObjectFunctions ReplyReader::Builder::functions{create_string, create_array, create_integer,
                                                          create_nil, free_object};

void ReplyReader::Free::operator()(redisReader* reader) const {
  redisReaderFree(reader);
}

ReplyReader::ReplyReader(std::size_t max_reply)
    : max_reply_(std::min(max_reply, kLargestReply)),
      reader_(redisReaderCreateWithFunctions(&Builder::functions)) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = this;
  reader_->maxbuf = kKeepBuffer;
}

ReplyReader::~ReplyReader() = default;

void ReplyReader::push(std::string_view bytes) {
  if (too_large_) throw ProtocolError(kTooLarge);
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK)
    throw ProtocolError(reader_->errstr);
}

// An unfinished value is refused for its bytes only if it would be refused when it is whole (a Reply is larger
// than the protocol's words around a text), so it makes no difference where the bytes are cut.
bool ReplyReader::begun_too_large() const {
  const std::string_view value(reader_->buf + reader_->pos, reader_->len - reader_->pos);
  if (value.size() > max_reply_) return true;
  if (value.size() <= kLongestLine) return false;
  // Its first letter, the kind, has been taken already.
  const bool is_text = reader_->rstack[reader_->ridx].type == REDIS_REPLY_STRING;
  return !is_text || value.substr(0, kLongestLength).find("\r\n") == std::string_view::npos;
}

bool ReplyReader::next() {
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK)
    throw ProtocolError(too_large_ ? kTooLarge : reader_->errstr);
  if (reply == nullptr) {
    too_large_ = begun_too_large();
    if (too_large_) throw ProtocolError(kTooLarge);
    return false;
  }
  built_ = 0;
  return true;
}

}  // namespace weir::redis

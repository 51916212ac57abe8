// The connection of a client: what runs on its strand.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/redis/core.h"
#include "weir/redis/handshake.h"

namespace weir::redis {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// What goes out in one write, unless a single command is larger.
constexpr std::size_t kMaxBatch = std::size_t{256} << 10;
// Deadlines are looked at no more often than this; each look costs O(calls in the queue).
constexpr std::chrono::milliseconds kGrain{1};

}  // namespace

asio::awaitable<void> Core::live(std::shared_ptr<Core> self) {
  const auto stopped = [&] {
    const Lock lock(self->mutex_);
    return self->stopped_;
  };
  const auto first = std::max(self->options_.backoff_first, Options::Millis(1));
  const auto longest = std::max(self->options_.backoff_max, first);
  Backoff backoff(first, longest);
  bool connected_before = false;
  while (!stopped()) {
    ReplyReader reader(self->options_.max_reply_bytes);
    bool connected = false;
    SteadyTime since{};
    try {
      co_await self->connect(reader);
      connected = true;
      self->metrics_.connects_ok.add();
      if (std::exchange(connected_before, true)) self->metrics_.reconnects.add();
      since = Clock::system().steady_now();
      co_await self->serve(reader);
    } catch (const ProtocolError& error) {
      connected ? self->broken(error.what(), true) : self->attempt_failed(error.what());
    } catch (const std::exception& error) {
      connected ? self->broken(Handshake::reason_of(error), false)
                : self->attempt_failed(Handshake::reason_of(error));
    }
    self->close();
    // Not by connecting alone: a server may greet everybody and then die of what it is asked.
    if (connected && Clock::system().steady_now() - since >= longest) backoff.reset();
    if (!stopped()) co_await self->pause(backoff.next());
  }
}

asio::awaitable<void> Core::pause(std::chrono::milliseconds time) {
  pause_timer_.expires_after(time);
  co_await pause_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
}

asio::awaitable<void> Core::connect(ReplyReader& reader) {
  attempting_ = true;
  attempt_over_ = false;
  given_up_ = false;
  attempt_timer_.expires_after(options_.connect_timeout);
  attempt_timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || !self->attempting_) return;
    self->attempt_over_ = true;
    self->close();
  });
  std::exception_ptr failure;
  try {
    co_await open();
    co_await Handshake::greet(*socket_, options_.address, reader, buffer_);
  } catch (...) {
    failure = std::current_exception();
  }
  attempting_ = false;
  attempt_timer_.cancel();
  check_attempt();  // the better reason, if it was that
  if (failure) std::rethrow_exception(failure);
}

void Core::check_attempt() const {
  if (attempt_over_)
    throw TimedOut("no connection within " + std::to_string(options_.connect_timeout.count()) + " ms");
  const Lock lock(mutex_);
  if (stopped_) throw NotDone("the client was stopped");
}

asio::awaitable<void> Core::open() {
  const auto endpoints = co_await Handshake::resolve(resolver_, options_.address);
  error_code failure = asio::error::host_not_found;
  for (const auto& endpoint : endpoints) {
    check_attempt();
    close();
    socket_ = std::make_shared<tcp::socket>(strand_);
    std::tie(failure) = co_await socket_->async_connect(endpoint, asio::as_tuple(asio::use_awaitable));
    check_attempt();
    if (failure) continue;
    Handshake::tune(*socket_);
    co_return;
  }
  throw boost::system::system_error(failure);
}

asio::awaitable<void> Core::serve(ReplyReader& reader) {
  {
    const Lock lock(mutex_);
    if (stopped_) throw NotDone("the client was stopped");
    connected_ = true;
    down_ = false;
    last_received_ = Clock::system().steady_now();
  }
  flush();
  for (;;) {
    const std::size_t got = co_await socket_->async_read_some(asio::buffer(buffer_), asio::use_awaitable);
    receive({buffer_.data(), got}, reader);
  }
}

// All replies that came are paired with their calls in one step; then the calls are resumed, those of this
// context at once; and what they send next goes out in one write.
void Core::receive(std::string_view bytes, ReplyReader& reader) {
  replies_.clear();
  std::exception_ptr damage;
  try {
    reader.feed(bytes, [&](Reply&& reply) { replies_.push_back(std::move(reply)); });
  } catch (const ProtocolError&) {
    damage = std::current_exception();  // the replies before it are good
  }
  AllFinished finished;
  {
    const Lock lock(mutex_);
    last_received_ = Clock::system().steady_now();
    for (auto& reply : replies_) {
      if (sent_.empty()) {
        if (!damage) damage = std::make_exception_ptr(ProtocolError("a reply that nobody asked for"));
        break;
      }
      take(std::move(reply), finished);
    }
    flush_comes_ = true;
  }
  for (auto& one : finished) {
    const auto executor = std::move(one.executor);
    asio::dispatch(executor,
                   [handler = std::move(one.handler), executor, error = std::move(one.error),
                    reply = std::move(one.reply)]() mutable { handler(std::move(error), std::move(reply)); });
  }
  flush();
  if (damage) std::rethrow_exception(damage);
}

void Core::take(Reply reply, AllFinished& out) {
  Call& call = *sent_.front();
  if (call.several) {
    call.answers.push_back(std::move(reply));
    if (call.answers.size() < call.replies) return;
    reply = Reply(std::move(call.answers));
  }
  finish(call, reply.is_error() ? Ending::error : Ending::ok, nullptr, std::move(reply), out);
  drop(call);
}

void Core::flush() {
  auto batch = std::make_shared<std::string>();
  {
    const Lock lock(mutex_);
    flush_comes_ = false;
    if (!connected_ || writing_ || !gather(*batch)) return;
    writing_ = true;
  }
  auto buffer = asio::buffer(*batch);
  auto written = [self = shared_from_this(), socket = socket_, batch = std::move(batch)](error_code error,
                                                                                         std::size_t) {
    if (socket != self->socket_) return;  // that connection is gone
    if (error) {
      // Nothing more goes out; what the server has answered may still be read, and then the reading ends.
      error_code ignored;
      socket->shutdown(tcp::socket::shutdown_both, ignored);
      return;
    }
    {
      const Lock lock(self->mutex_);
      self->writing_ = false;
    }
    self->flush();
  };
  asio::async_write(*socket_, buffer, std::move(written));
}

bool Core::gather(std::string& batch) {
  const auto now = Clock::system().steady_now();
  while (!queued_.empty()) {
    Call& call = *queued_.front();
    if (!batch.empty() && batch.size() + call.bytes.size() > kMaxBatch) break;
    if (call.idempotent) {
      batch += call.bytes;
    } else {
      waiting_bytes_ -= call.bytes.size();
      if (batch.empty()) {
        batch = std::exchange(call.bytes, {});
      } else {
        batch += std::exchange(call.bytes, {});
      }
    }
    ++call.sends;
    call.sent_at = now;
    call.place = Call::Place::sent;
    sent_.splice(sent_.end(), queued_, queued_.begin());
  }
  return !batch.empty();
}

// `by_reply`: what came can't be read, so whose turn it was can't be helped by asking again.
void Core::broken(const std::string& why, bool by_reply) {
  AllFinished finished;
  bool stopped = false;
  {
    const Lock lock(mutex_);
    stopped = stopped_;
    connected_ = false;
    writing_ = false;
    flush_comes_ = false;
    last_failure_ = given_up_ ? "the server was silent" : why;
    const std::string reason = "the connection broke: " + last_failure_;
    if (by_reply && !sent_.empty()) {
      finish(*sent_.front(), Ending::unknown, unknown(*sent_.front(), reason), {}, finished);
      drop(*sent_.front());
    }
    Calls again;
    for (auto at = sent_.begin(); at != sent_.end();) {
      const auto call = *at++;
      if (!call->handler || !call->idempotent || call->sends >= kMaxSends) continue;
      call->answers.clear();
      call->place = Call::Place::queued;
      again.splice(again.end(), sent_, call->at);
    }
    fail_all(sent_, reason, finished);
    queued_.splice(queued_.begin(), again);
  }
  if (!stopped)
    telemetry::swallowed("redis " + options_.name, UnknownOutcome(endpoint_ + ": " + last_failure_));
  resume(std::move(finished));
}

void Core::attempt_failed(const std::string& why) {
  AllFinished finished;
  bool stopped = false;
  {
    const Lock lock(mutex_);
    down_ = true;
    last_failure_ = why;
    stopped = stopped_;
    if (options_.fail_fast) fail_all(queued_, "no connection: " + why, finished);
  }
  resume(std::move(finished));
  if (stopped) return;
  metrics_.connects_failed.add();
  telemetry::swallowed("redis " + options_.name, NotDone(endpoint_ + ": " + why));
}

void Core::close() {
  error_code ignored;
  socket_->close(ignored);
  resolver_.cancel();
}

void Core::arm() {
  SteadyTime at;
  {
    const Lock lock(mutex_);
    if (stopped_ || check_at_ == SteadyTime::max()) return;
    at = check_at_;
  }
  deadline_timer_.expires_at(at);
  deadline_timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error) self->sweep();
  });
}

void Core::sweep() {
  AllFinished finished;
  bool silent = false;
  {
    const Lock lock(mutex_);
    const auto now = Clock::system().steady_now();
    check_at_ = std::max(expire(now, finished), now + kGrain);
    if (connected_ && !sent_.empty() && sent_.front()->deadline <= now) {
      const auto silent_at = std::max(last_received_, sent_.front()->sent_at) + options_.silence_limit;
      silent = silent_at <= now;
      if (!silent) check_at_ = std::min(check_at_, silent_at);
    }
  }
  if (silent) {
    given_up_ = true;
    close();  // which ends the reading, and that everything else
  }
  resume(std::move(finished));
  arm();
}

}  // namespace weir::redis

#include "weir/redis/subscriber.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <utility>
#include <vector>

#include "weir/base/backoff.h"
#include "weir/base/clock.h"
#include "weir/base/random.h"
#include "weir/redis/client_metrics.h"
#include "weir/redis/handshake.h"

namespace weir::redis {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Everything but `stop` and `connected` runs on the strand.
class Subscriber::Listening : public std::enable_shared_from_this<Listening> {
 public:
  Listening(const asio::any_io_executor& executor, Options options, Calls calls)
      : options_(std::move(options)),
        calls_(std::move(calls)),
        metrics_(options_.name),
        strand_(asio::make_strand(executor)),
        resolver_(strand_),
        watch_(strand_),
        pause_(strand_),
        buffer_(kReadBuffer) {}

  void start() { asio::co_spawn(strand_, live(shared_from_this()), asio::detached); }

  void stop() {
    const bool first = !stopped_.exchange(true);
    {
      const std::lock_guard waits_for_a_call(calling_);
    }
    if (!first) return;
    asio::post(strand_, [self = shared_from_this()] {
      self->close();
      self->watch_.cancel();
      self->pause_.cancel();
    });
  }
  bool connected() const { return connected_; }

 private:
  static constexpr std::size_t kReadBuffer = std::size_t{16} << 10;

  static asio::awaitable<void> live(std::shared_ptr<Listening> self) {
    const auto longest = std::max(self->options_.backoff_max, Options::Millis(1));
    Backoff backoff(std::clamp(self->options_.backoff_first, Options::Millis(1), longest), longest);
    while (!self->stopped_) {
      self->given_up_ = nullptr;
      bool joined = false;
      const auto began = Clock::system().steady_now();
      try {
        co_await self->open();
        co_await self->listen(joined);
      } catch (const std::exception& error) {
        self->ended(joined, self->given_up_ ? self->given_up_ : Handshake::reason_of(error));
      }
      self->close();
      // Not by joining alone: whoever ends each subscription at once isn't to be asked ever faster.
      if (joined && Clock::system().steady_now() - began >= longest) backoff.reset();
      if (self->stopped_) break;
      self->pause_.expires_after(backoff.next());
      co_await self->pause_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }

  asio::awaitable<void> open() {
    began_ = Clock::system().steady_now();
    unanswered_since_ = SteadyTime::max();
    suspected_ = false;
    socket_ = std::make_shared<tcp::socket>(strand_);
    watch(socket_);
    error_code failure = asio::error::host_not_found;
    address_ = next_address();
    for (const auto& endpoint : co_await Handshake::resolve(resolver_, address_)) {
      if (given_up_ || stopped_) break;
      error_code ignored;
      socket_->close(ignored);
      std::tie(failure) = co_await socket_->async_connect(endpoint, asio::as_tuple(asio::use_awaitable));
      if (!failure) break;
    }
    if (failure) throw boost::system::system_error(failure);
    Handshake::tune(*socket_);
  }

  // What `nodes` says; empty: nothing.
  std::vector<Address> nodes() {
    std::vector<Address> all;
    if (options_.nodes) call([&] { all = options_.nodes(); });
    return all;
  }
  // By chance, so that not all subscribers of a dead node go to the same other one.
  Address next_address() {
    auto all = nodes();
    if (all.size() > 1) std::erase(all, address_);
    return all.empty() ? options_.address : all[thread_random().below(all.size())];
  }
  bool has_left() {
    const auto all = nodes();
    return !all.empty() && std::ranges::find(all, address_) == all.end();
  }

  asio::awaitable<void> listen(bool& joined) {
    ReplyReader reader(options_.max_message_bytes);
    co_await Handshake::greet(*socket_, address_, reader, buffer_);
    const auto subscribe = Handshake::command("SUBSCRIBE", std::array{Command::Argument(options_.channel)});
    co_await asio::async_write(*socket_, asio::buffer(subscribe.bytes()), asio::use_awaitable);
    for (;;) {
      const std::size_t got = co_await socket_->async_read_some(asio::buffer(buffer_), asio::use_awaitable);
      unanswered_since_ = SteadyTime::max();
      suspected_ = false;
      reader.feed({buffer_.data(), got}, [&](Reply&& reply) { take(reply, joined); });
    }
  }

  void take(const Reply& reply, bool& joined) {
    reply.throw_if_error("SUBSCRIBE");
    const Reply::Array& parts = reply.array();
    const std::string& kind = parts.at(0).text();
    if (kind == "message" && joined) {
      const std::string& text = parts.at(2).text();
      call([&] { calls_.message(text); });
    } else if (kind == "subscribe" && !joined) {
      joined = true;
      call([&] { calls_.joined(); });
      connected_ = true;
      watch(socket_);  // at its new pace
      metrics_.connected.set(1);
      metrics_.connects_ok.add();
      if (std::exchange(joined_before_, true)) metrics_.reconnects.add();
    } else if (kind != "pong") {
      throw ProtocolError("nobody asked for this: " + kind);
    }
  }

  template <class F>
  void call(F f) {
    const std::lock_guard lock(calling_);
    if (stopped_) return;
    try {
      f();
    } catch (const std::exception& error) {
      telemetry::swallowed("redis " + options_.name, error);
    } catch (...) {
      telemetry::swallowed("redis " + options_.name, std::runtime_error("not an exception"));
    }
  }

  // Looks after one connection, from its first attempt to its end.
  void watch(std::shared_ptr<tcp::socket> socket) {
    watch_.expires_after(connected_ ? options_.ping_every : options_.connect_timeout);
    watch_.async_wait([self = shared_from_this(), socket = std::move(socket)](error_code error) mutable {
      if (!error && socket == self->socket_) self->look_after(std::move(socket));
    });
  }
  void look_after(std::shared_ptr<tcp::socket> socket) {
    const auto now = Clock::system().steady_now();
    if (!connected_ && now - began_ >= options_.connect_timeout) return give_up("no subscription in time");
    if (connected_ && has_left()) return give_up("the node isn't one of the cluster's any more");
    if (connected_ && unanswered_since_ <= now - options_.silence_limit) {
      // If it was this process that stood still, the answer is here already and about to be read.
      if (std::exchange(suspected_, true)) return give_up("the server was silent");
    } else if (connected_ && !std::exchange(pinging_, true)) {
      unanswered_since_ = std::min(unanswered_since_, now);
      ping(socket);
    }
    watch(std::move(socket));
  }
  void ping(const std::shared_ptr<tcp::socket>& socket) {
    static const std::string kPing = Handshake::command("PING", {}).bytes();
    asio::async_write(*socket, asio::buffer(kPing),
                      [self = shared_from_this(), socket](error_code, std::size_t) {
                        if (socket == self->socket_) self->pinging_ = false;  // else that connection is gone
                      });
  }
  void give_up(const char* why) {
    given_up_ = why;
    close();  // which ends the reading, and that everything else
  }

  void close() {
    if (socket_) {
      error_code ignored;
      socket_->close(ignored);
    }
    resolver_.cancel();
  }

  void ended(bool joined, const std::string& why) {
    connected_ = false;
    pinging_ = false;
    metrics_.connected.set(0);
    if (stopped_) return;
    if (!joined) metrics_.connects_failed.add();
    telemetry::swallowed("redis " + options_.name,
                         NotDone(address_.endpoint() + ": " + (joined ? "" : "no connection: ") + why));
  }

  const Options options_;
  const Calls calls_;
  ClientMetrics metrics_;
  asio::strand<asio::any_io_executor> strand_;
  tcp::resolver resolver_;
  asio::steady_timer watch_, pause_;
  std::vector<char> buffer_;
  // A new one for each connection: a write that is still under way must not find itself on the next.
  std::shared_ptr<tcp::socket> socket_;
  Address address_{};                        // of this attempt, and the connection that came of it
  SteadyTime began_{}, unanswered_since_{};  // of the first PING since something came; max: none
  bool suspected_ = false;                   // of silence
  const char* given_up_ = nullptr;           // why, if it was
  bool pinging_ = false;
  bool joined_before_ = false;
  std::atomic<bool> connected_{false}, stopped_{false};
  std::recursive_mutex calling_;  // held during a call; a call may stop its subscriber
};

Subscriber::Subscriber(asio::any_io_executor executor, Options options, Calls calls)
    : listening_(std::make_shared<Listening>(executor, std::move(options), std::move(calls))) {
  listening_->start();
}
void Subscriber::stop() {
  listening_->stop();
}
bool Subscriber::connected() const {
  return listening_->connected();
}

}  // namespace weir::redis

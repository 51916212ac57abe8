// Poller and Stream: a worker's sockets, and when they are ready. For this folder's own use.
//
// Asio tries every read before it waits for it. On a connection that asks, is answered and asks again that
// try always comes back empty, and is a third of the request's system calls. A Stream believes the kernel's
// edges instead: after a read that left room in its buffer the socket is empty, and the next edge tells when
// it no longer is (epoll(7), "Edge-triggered and level-triggered"). The streams of a worker are in one epoll
// set, which Asio watches as a single descriptor: when requests come densely, one wake-up serves many.
#pragma once

#include <array>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "weir/base/unique_function.h"

namespace weir::http {

class Stream;

// Belongs to the thread that runs its context. Must be destroyed before the context; streams may live longer.
class Poller {
 public:
  // Throws boost::system::system_error, for want of descriptors say.
  explicit Poller(boost::asio::io_context& context);

  // True while the sockets that were ready together are being served: `wait_for_turn` has an end then.
  bool delivering() const { return delivering_; }

 private:
  friend class Stream;
  void watch();
  void deliver();

  boost::asio::io_context& context_;
  boost::asio::posix::stream_descriptor set_;
  bool delivering_ = false;
  std::vector<Stream*> turns_, ending_;  // who waits for the end of the batch, and whose turn it is
};

// A connected TCP socket that one coroutine reads from or writes to. On its worker's thread only.
class Stream {
 public:
  struct Transfer {
    std::size_t count = 0;
    bool ended = false;  // nothing more will come, or can be sent
  };

  // Takes the descriptor over.
  explicit Stream(int socket) : socket_(socket) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Comes before all else. Throws boost::system::system_error.
  void watch_by(Poller& poller);

  // Reads what has come; 0 when nothing has.
  Transfer read(boost::asio::mutable_buffer room);
  // Sends what the kernel takes at once; fewer than all: `wait_for_room`.
  Transfer write(const std::array<boost::asio::const_buffer, 2>& bytes);

  // Completes, with nothing, once there may be something to read, or `wake` was called; after others' turn
  // when there is already. One wait at a time.
  template <class Token>
  auto wait_for_input(Token&& token) {
    return wait(kInput, std::forward<Token>(token));
  }
  // The same for room to write after a write that could not send all.
  template <class Token>
  auto wait_for_room(Token&& token) {
    return wait(kRoom, std::forward<Token>(token));
  }
  // Completes when all sockets that were ready together have been served. Answers that leave one behind the other
  // find the client's side awake, and cost a fifth less than answers with the work for the next between them.
  template <class Token>
  auto wait_for_turn(Token&& token) {
    return wait(kTurn, std::forward<Token>(token));
  }
  // Ends the wait, if there is one; its coroutine goes on later, not within the call.
  void wake();
  // Forgets who waits, without resuming it: for the end of the worker.
  void abandon() { waiter_ = {}; }

  // The other side sees the end of what we send.
  void shutdown_send();
  // Ends the wait too.
  void close();
  bool is_open() const { return socket_ >= 0; }

 private:
  friend class Poller;
  // What wakes a wait; errors wake both.
  static const std::uint32_t kInput, kRoom;
  static constexpr std::uint32_t kTurn = 0;

  template <class Token>
  auto wait(std::uint32_t events, Token&& token) {
    return boost::asio::async_initiate<Token, void()>(
        [this, events](auto handler) {
          awaited_ = events;
          waiter_ = std::move(handler);
          if (events == kTurn) poller_->turns_.push_back(this);
          if (readable_ && events == kInput) wake();
        },
        token);
  }
  void on_events(std::uint32_t events);
  void resume();

  Poller* poller_ = nullptr;
  int socket_;
  bool readable_ = false;
  bool no_more_edges_ = false;  // the end has been told: no edge will come for what is left to read
  std::uint32_t awaited_ = 0;
  UniqueFunction<void()> waiter_;
};

}  // namespace weir::http

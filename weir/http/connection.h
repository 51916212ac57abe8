// Connection: one client, from accept to close, as one coroutine on one worker. For this folder's own use.
//
// It suspends only to wait for bytes, for a handler, or for a client that doesn't take its answer; each of
// these waits is a Phase with a deadline. (And for its turn to answer, which comes before the thread rests.)
// One timer serves them all: it is armed anew only when a deadline comes earlier than it would fire, and looks
// at the deadline in force when it does. So an ordinary request costs no timer operation at all.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <optional>

#include "weir/http/client_memory.h"
#include "weir/http/input.h"
#include "weir/http/output.h"
#include "weir/http/poller.h"
#include "weir/http/request_parser.h"
#include "weir/http/worker.h"

namespace weir::http {

class Connection final : public std::enable_shared_from_this<Connection>, private ClientMemory::Holder {
 public:
  // Takes the accepted socket's descriptor over. A connection too many is only told so. On the socket's
  // thread.
  static void start(Worker& worker, boost::asio::ip::tcp::socket& socket, bool too_many);

  Connection(Worker& worker, boost::asio::ip::tcp::socket& socket, const boost::asio::ip::address& peer,
             bool too_many);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // On the worker's thread: close if idle, else after the current answer.
  void drain();
  // On the worker's thread: cancel the handler, or close at once.
  void cut();
  // On the worker's thread, when its context will never run again.
  void abandon() { stream_.abandon(); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;
  // Answered: the client has been, the handler hasn't ended.
  enum class Phase { busy, idle, head, body, handling, answered, writing, lingering };

  Awaitable<void> run();
  Awaitable<bool> read_body();
  Awaitable<bool> write_rest();
  Awaitable<void> refuse(Problem problem);
  Awaitable<void> linger();

  void join();
  bool await_bytes();
  std::optional<Problem> limit_body();
  bool receive(std::size_t least_room);
  bool holds(bool waits);
  void give_up() override;
  Problem too_slow(const char* detail) const;
  std::optional<Problem> parse_head(const HeadScanner& scanner);
  Dispatcher::Plan begin_request();
  bool finish_request(Response response);
  void answer(Response response, std::string_view label, bool keep_alive);
  void record(std::string_view label, unsigned status, std::size_t bytes);
  void take_request_id();
  bool write_now();
  void write_if_suspended();
  void answer_without_handler();

  void enter(Phase phase, std::chrono::milliseconds allowed);
  void schedule(Time at);
  void on_timer();
  void expire();

  Worker& worker_;
  const ServerOptions& options_;
  Stream stream_;
  boost::asio::steady_timer timer_;
  boost::asio::cancellation_signal cancel_;
  const bool too_many_;

  const std::string peer_;
  const bool behind_proxy_;
  std::list<Connection*>::iterator place_;
  bool joined_ = false;

  Input input_;
  Output output_;
  Request request_;
  std::optional<RequestParser> parser_;
  std::size_t message_end_ = 0;  // of the current request, within what is unread
  std::string_view label_;       // of the current request's route
  // Read anew after each wait: what happens between two of them is one moment.
  Time now_ = std::chrono::steady_clock::now();
  Time started_;
  bool broken_ = false;  // a write failed: there is nobody to answer

  Phase phase_ = Phase::busy;
  Time deadline_ = Time::max();
  Time armed_for_ = Time::max();
  bool expired_ = false;
  bool cancelled_ = false;  // the handler has been told
  bool given_up_ = false;   // too much was held for slow clients
};

}  // namespace weir::http

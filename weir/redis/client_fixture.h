// For the tests of this folder: waits, and a peer that isn't Redis.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "weir/redis/client.h"
#include "weir/testing/io_threads.h"
#include "weir/testing/redis_server.h"

namespace weir::redis {

namespace asio = boost::asio;
using namespace std::chrono_literals;

inline asio::awaitable<void> pause(std::chrono::steady_clock::duration time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

// Until it is so; false after ten seconds.
inline bool soon(const std::function<bool()>& so) {
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (!so()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// The text of the fault in which a call must end.
template <class Fault>
std::string fault_of(std::future<Reply> result) {
  try {
    result.get();
  } catch (const Fault& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another fault: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no fault";
  return {};
}

inline bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Listens on a free port and serves one connection after the other with `serve`, on a thread of its own.
// Clients' connections end with `serve`, whatever it throws.
class FakePeer {
 public:
  using Socket = asio::ip::tcp::socket;
  using Serve = std::function<void(Socket&, int number)>;

  explicit FakePeer(Serve serve)
      : acceptor_(io_, {asio::ip::address_v4::loopback(), 0}),
        serve_(std::move(serve)),
        thread_([this] { work(); }) {}
  ~FakePeer() {
    stopping_ = true;
    Socket last(io_);
    boost::system::error_code ignored;
    last.connect(acceptor_.local_endpoint(), ignored);  // wakes `accept`
    last.close(ignored);
    thread_.join();
  }
  Address address() const { return {.port = acceptor_.local_endpoint().port()}; }

  // Reads and answers the greeting of a client without a password and with database 0.
  static void greet(Socket& socket) {
    std::string got;
    asio::read_until(socket, asio::dynamic_buffer(got), "PING\r\n");
    write(socket, "+PONG\r\n");
  }
  static std::string read(Socket& socket, std::string_view until) {
    std::string got;
    asio::read_until(socket, asio::dynamic_buffer(got), until);
    return got;
  }
  static void write(Socket& socket, std::string_view bytes) { asio::write(socket, asio::buffer(bytes)); }
  // Until the other side closes.
  static void wait_for_end(Socket& socket) {
    boost::system::error_code error;
    char bytes[1024];
    while (!error) socket.read_some(asio::buffer(bytes), error);
  }

 private:
  void work() {
    for (int number = 0; !stopping_; ++number) {
      Socket socket(io_);
      boost::system::error_code error;
      acceptor_.accept(socket, error);
      if (error || stopping_) return;
      try {
        serve_(socket, number);
      } catch (const boost::system::system_error&) {
        continue;  // the other side went away
      }
    }
  }

  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  Serve serve_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace weir::redis

// Server: HTTP/1.1 over plain TCP. One io_context and one thread per core, one acceptor that deals the
// sockets to them in turn.
//
// A connection is one coroutine on one of the io_contexts and stays there, and its handlers run inline on it.
// Every wait has a deadline that received bytes don't renew, every size a limit; both are in ServerOptions.
// Requests that two servers in a row could read differently (both Content-Length and Transfer-Encoding, a
// bare line feed, a folded header, ..) are refused and the connection is closed.
//
// The parser is Boost.Beast's. Measured on one core with 1 KiB answers on kept-alive connections: see
// README.md.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/clock.h"
#include "weir/http/request.h"
#include "weir/http/router.h"

namespace weir::http {

// Whose token (bearer, or the cookie `weir_session`) this is; nothing for one that isn't valid. Called on I/O
// threads, from several at once: must be quick and must not block.
using Authenticator = std::function<std::optional<Principal>(std::string_view token)>;

// Which requests are logged: none, those that ended with a 5xx, or all. Lines are written by a thread of
// their own.
enum class AccessLogLevel { none, errors, all };

struct ServerOptions {
  std::string listen = "127.0.0.1:8080";        // port 0: a free one; IPv6 as "[::1]:8080"
  unsigned threads = 0;                         // 0: as many as this process may use cores
  std::size_t max_body = std::size_t{2} << 20;  // bytes; more is 413
  std::size_t max_connections = 10'000;         // one more is answered 503 and closed
  std::size_t max_header_line = 8 << 10;        // bytes, of the request line and of each field; more is 431
  std::size_t max_head = 64 << 10;              // bytes, of the whole head; more is 431
  std::size_t max_fields = 100;                 // header fields; more is 431
  // Bytes held for clients that are slow to send or to take, in all; over it the slowest are cut off.
  std::size_t max_client_memory = std::size_t{256} << 20;
  std::chrono::milliseconds head_deadline{10'000};  // first to last byte of a head; then 408
  std::chrono::milliseconds body_deadline{30'000};  // end of the head to the end of the body; then 408
  std::chrono::milliseconds idle_deadline{60'000};  // between requests; then closed
  // A handler's time; then it is cancelled and 503 answered, whether it lets itself be cancelled or not.
  std::chrono::milliseconds request_deadline{10'000};
  // For the client to take the first or the next bytes of an answer, and with a second for each 16 KiB added
  // all of it; then closed.
  std::chrono::milliseconds write_deadline{30'000};
  std::vector<std::string> trusted_proxies = {};  // addresses, networks (10.0.0.0/8): X-Forwarded-* counts
  std::vector<std::string> cors_origins = {};     // "https://example.com", or "*" for any
  AccessLogLevel access_log = AccessLogLevel::errors;
};

// The checks of single options, for those who read them from people: they throw Unusable, with the reason.
void check_listen(const std::string& text);
void check_trusted_proxies(const std::vector<std::string>& texts);
void check_cors_origins(const std::vector<std::string>& texts);

class Server {
 public:
  // Checks the options; throws Unusable for an address, a proxy or an origin that can't be meant. `clock` is
  // what Date and the durations in metrics are read from; deadlines are the operating system's.
  Server(ServerOptions options, Router router, Authenticator authenticate,
         const Clock& clock = Clock::system());
  // Stops at once if still running. Destroys what handlers left suspended: pools that may still complete into
  // them must have been stopped before.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens and serves. Throws Unusable, with the address in it, when the port is in use or the address isn't
  // ours.
  void start();
  // The port that is listened on, from start() on.
  std::uint16_t port() const;
  // "127.0.0.1:8080"
  std::string address() const;

  // Stops accepting, closes idle connections, lets running requests finish (answering `Connection: close`)
  // and returns when all have or `deadline` has passed; then handlers are cancelled and connections closed.
  // Blocks; not from a handler. Idempotent.
  void stop(std::chrono::milliseconds deadline = std::chrono::seconds(10));
  // True from the beginning of stop() on. Thread-safe.
  bool stopping() const;

  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::http

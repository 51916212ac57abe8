#include "weir/http/server.h"

#include <pthread.h>
#include <sched.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <thread>

#include "weir/base/fault.h"
#include "weir/http/connection.h"
#include "weir/http/worker.h"
#include "weir/telemetry/log.h"

namespace weir::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// After a failed accept (no file descriptors, mostly) it waits this long: trying at once would fail again.
constexpr std::chrono::milliseconds kAcceptPause{50};
// So many connections beyond the limit are told that they are too many; what comes then is closed without a
// word.
constexpr std::size_t kMaxRefusals = 128;
// For connections to end after they were cut.
constexpr std::chrono::seconds kCutGrace{1};

// "127.0.0.1:8080", "[::1]:8080"
tcp::endpoint parse_endpoint(const std::string& text) {
  const auto unusable = [&] {
    return Unusable("can't listen on \"" + text +
                    "\": not an address and port such as 127.0.0.1:8080 or [::1]:8080");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) throw unusable();
  std::string host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  const auto port = parse_decimal(std::string_view(text).substr(colon + 1), 65'535);
  if (error || !port || address.is_v6() != bracketed) throw unusable();
  return {address, static_cast<std::uint16_t>(*port)};
}

// The cores that this process may use: a container's or taskset's share, not the machine's.
std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

}  // namespace

struct Server::Impl {
  using Guard = asio::executor_work_guard<asio::io_context::executor_type>;

  Impl(ServerOptions options, std::size_t threads, Router router, Authenticator authenticate,
       const Clock& clock)
      : endpoint(parse_endpoint(options.listen)),
        shared(std::move(options), threads, std::move(router), std::move(authenticate), clock) {
    for (std::size_t i = 0; i < threads; ++i) {
      workers.push_back(std::make_unique<Worker>(shared, i, threads));
    }
    acceptor.emplace(workers[0]->context);
  }

  void listen();
  void begin_accepting();
  asio::awaitable<void> accept();
  bool deal(tcp::socket socket, Worker& worker);
  void run(Worker& worker);
  // Runs it on each worker's thread.
  template <class F>
  void on_all(F f) {
    for (const auto& worker : workers) asio::post(worker->context, [f, w = worker.get()] { f(*w); });
  }

  tcp::endpoint endpoint;
  Shared shared;
  std::vector<std::unique_ptr<Worker>> workers;
  std::optional<tcp::acceptor> acceptor;
  std::vector<Guard> guards;
  std::vector<std::thread> threads;
};

void Server::Impl::listen() {
  boost::system::error_code error;
  const auto check = [&] {
    if (error) throw Unusable("can't listen on " + text_of(endpoint) + ": " + error.message());
  };
  acceptor->open(endpoint.protocol(), error);
  check();
  acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  check();
  acceptor->bind(endpoint, error);
  check();
  acceptor->listen(asio::socket_base::max_listen_connections, error);
  check();
  endpoint = acceptor->local_endpoint();
}

// Whatever ends it but the acceptor's end begins it anew: a server that is up must not be deaf.
void Server::Impl::begin_accepting() {
  asio::co_spawn(workers[0]->context, accept(), [this](const std::exception_ptr& error) {
    if (!error || !acceptor->is_open()) return;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      telemetry::swallowed("http.accept", e);
    }
    begin_accepting();
  });
}

asio::awaitable<void> Server::Impl::accept() {
  asio::steady_timer pause(workers[0]->context);
  for (std::size_t turn = 0;; turn = (turn + 1) % workers.size()) {
    Worker& worker = *workers[turn];
    auto [error, socket] = co_await acceptor->async_accept(asio::as_tuple(asio::deferred));
    if (!acceptor->is_open()) co_return;
    if (error == asio::error::connection_aborted) continue;
    if (!error && deal(std::move(socket), worker)) continue;
    if (error) telemetry::swallowed("http.accept", std::runtime_error(error.message()));
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(asio::as_tuple(asio::deferred));
  }
}

// False when the connection could not be set up: memory is short, so the next should wait a little.
bool Server::Impl::deal(tcp::socket socket, Worker& worker) {
  const std::size_t open = shared.connections();
  const bool too_many = open >= shared.options.max_connections;
  if (too_many) shared.refused.add();
  if (open >= shared.options.max_connections + kMaxRefusals) return true;  // the socket's end closes it
  try {
    Connection::start(worker, socket, too_many);
    return true;
  } catch (const std::exception& e) {
    telemetry::swallowed("http.accept", e);
    return false;
  }
}

void Server::Impl::run(Worker& worker) {
  ::pthread_setname_np(::pthread_self(), ("http-" + std::to_string(worker.number)).c_str());
  for (;;) {
    try {
      worker.context.run();
      return;
    } catch (const std::exception& e) {
      // Nothing that is posted here should throw. If something does, the other connections go on.
      telemetry::swallowed("http.worker", e);
    }
  }
}

void check_listen(const std::string& text) {
  parse_endpoint(text);
}

void check_trusted_proxies(const std::vector<std::string>& texts) {
  const Proxies parsed(texts);
}

void check_cors_origins(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) check_origin(text);
}

Server::Server(ServerOptions options, Router router, Authenticator authenticate, const Clock& clock) {
  const std::size_t threads = options.threads > 0 ? options.threads : usable_cores();
  impl_ =
      std::make_unique<Impl>(std::move(options), threads, std::move(router), std::move(authenticate), clock);
}

Server::~Server() {
  stop(std::chrono::milliseconds(0));
}

void Server::start() {
  impl_->listen();
  impl_->begin_accepting();
  for (const auto& worker : impl_->workers) {
    impl_->guards.emplace_back(worker->context.get_executor());
    impl_->threads.emplace_back([impl = impl_.get(), w = worker.get()] { impl->run(*w); });
  }
}

void Server::stop(std::chrono::milliseconds deadline) {
  impl_->shared.stopping = true;
  if (impl_->threads.empty()) return;
  const auto until = std::chrono::steady_clock::now() + deadline;
  auto closed = std::make_shared<std::promise<void>>();
  asio::post(impl_->workers[0]->context, [impl = impl_.get(), closed] {
    boost::system::error_code ignored;
    impl->acceptor->close(ignored);
    // Only now: what was accepted before must be there to be drained.
    impl->on_all([](Worker& worker) { worker.drain(); });
    closed->set_value();
  });
  closed->get_future().wait_until(until);
  if (!impl_->shared.wait_until_none(until)) {
    impl_->on_all([](Worker& worker) { worker.cut(); });
    impl_->shared.wait_until_none(std::chrono::steady_clock::now() + kCutGrace);
  }
  impl_->guards.clear();
  for (const auto& worker : impl_->workers) worker->context.stop();
  for (auto& thread : impl_->threads) thread.join();
  impl_->threads.clear();
  impl_->shared.dispatcher.router().stopped();
}

std::uint16_t Server::port() const {
  return impl_->endpoint.port();
}

std::string Server::address() const {
  return text_of(impl_->endpoint);
}

bool Server::stopping() const {
  return impl_->shared.stopping;
}

std::size_t Server::connections() const {
  return impl_->shared.connections();
}

}  // namespace weir::http

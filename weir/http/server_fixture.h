// A server with a few routes on a free port, for tests.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <thread>

#include "weir/http/problem.h"
#include "weir/http/raw_client.h"
#include "weir/http/server.h"

namespace weir::http {

using std::chrono::milliseconds;

inline Reply wait_for(milliseconds time) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, time);
  co_await timer.async_wait(boost::asio::use_awaitable);
  co_return Response::text("waited");
}

inline Router test_routes() {
  Router router;
  router.add(
      {"GET", "/fast", Access::anyone, [](Request&) -> Reply { co_return Response::text("fast"); }, {}});
  router.add({"GET",
              "/echo/{name}",
              Access::anyone,
              [](Request& request) -> Reply { co_return Response::text(std::string(request.param("name"))); },
              {}});
  router.add({"GET",
              "/wait",
              Access::anyone,
              [](Request& request) -> Reply {
                co_return co_await wait_for(milliseconds(std::stoi(request.query("ms").value_or("50"))));
              },
              {}});
  router.add({"GET",
              "/large",
              Access::anyone,
              [](Request& request) -> Reply {
                co_return Response::text(
                    std::string(std::stoul(request.query("size").value_or("1000000")), 'x'));
              },
              {}});
  router.add({"GET",
              "/shared",
              Access::anyone,
              [bytes = std::make_shared<const std::string>(std::string(300'000, 's'))](Request&) -> Reply {
                co_return Response::shared(bytes, "text/css");
              },
              {}});
  router.add({"POST",
              "/body",
              Access::anyone,
              [](Request& request) -> Reply { co_return Response::text(request.body); },
              {}});
  router.add({"GET",
              "/peer",
              Access::anyone,
              [](Request& request) -> Reply {
                co_return Response::text(request.peer + (request.secure ? " secure " : " plain ") +
                                         request.request_id);
              },
              {}});
  router.add({"GET",
              "/split",
              Access::anyone,
              [](Request&) -> Reply { co_return Response::text("x").with("X-A", "1\r\nSet-Cookie: evil=1"); },
              {}});
  router.add({"GET",
              "/fails",
              Access::anyone,
              [](Request&) -> Reply {
                throw not_found("by choice");
                co_return Response();
              },
              {}});
  return router;
}

class TestServer {
 public:
  explicit TestServer(ServerOptions options = {}, Router router = test_routes()) {
    options.listen = "127.0.0.1:0";
    if (options.threads == 0) options.threads = 2;
    server_ = std::make_unique<Server>(std::move(options), std::move(router), nullptr);
    server_->start();
  }
  Server& operator*() { return *server_; }
  Server* operator->() { return server_.get(); }
  RawClient connect() { return RawClient(server_->port()); }
  RawClient::Answer ask(std::string_view request) { return connect().ask(request); }

  // Waits, for at most 10 s, until so many connections are open.
  bool has_connections(std::size_t count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (server_->connections() != count) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }

 private:
  std::unique_ptr<Server> server_;
};

}  // namespace weir::http

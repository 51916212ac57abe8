// A service of somebody else, against the installed package: a route that reads a SQLite database.
// usage: consumer DATABASE
#include <weir/http/server.h>
#include <weir/sql/database.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>
#include <string>

namespace asio = boost::asio;
namespace http = weir::http;
namespace sql = weir::sql;

namespace {

constexpr std::array kMigrations{sql::Migration{1, "rivers", "CREATE TABLE rivers (name TEXT NOT NULL)"}};
const sql::Query kAdd{"rivers", "add", "INSERT INTO rivers (name) VALUES (?)"};
const sql::Query kFirst{"rivers", "first", "SELECT name FROM rivers LIMIT 1"};

http::Router routes(sql::Database& store) {
  http::Router router;
  http::Route route{"GET", "/river"};
  route.handler = [&store](http::Request&) -> http::Reply {
    auto name = co_await store.read(
        [](sql::Session& session) { return session.one(kFirst, sql::first<std::string>); });
    co_return http::Response::text(std::move(name).value());
  };
  router.add(std::move(route));
  return router;
}

std::string get(std::uint16_t port, const std::string& path) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::make_address("127.0.0.1"), port});
  asio::write(socket, asio::buffer("GET " + path + " HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"));
  std::string answer;
  boost::system::error_code end;
  asio::read(socket, asio::dynamic_buffer(answer), end);
  return answer;
}

}  // namespace

int main(int, char** arguments) {
  http::ServerOptions options;
  options.listen = "127.0.0.1:0";
  sql::Database store({.path = arguments[1]});
  store.migrate("rivers", kMigrations);
  store.write_now([](sql::Session& session) { session.execute(kAdd, "Elbe"); });
  http::Server server(std::move(options), routes(store), [](std::string_view) { return std::nullopt; });
  server.start();
  const std::string answer = get(server.port(), "/river");
  server.stop();
  const bool fine = answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nElbe");
  std::puts(fine ? "the package works" : answer.c_str());
  return fine ? 0 : 1;
}

#include "weir/redis/handshake.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>
#include <tuple>
#include <utility>

namespace weir::redis {

namespace asio = boost::asio;
using boost::system::error_code;

asio::awaitable<std::vector<asio::ip::tcp::endpoint>> Handshake::resolve(tcp::resolver& resolver,
                                                                         const Address& address) {
  error_code not_numeric;
  const auto numeric = asio::ip::make_address(address.host, not_numeric);
  if (!not_numeric) co_return std::vector{tcp::endpoint(numeric, address.port)};
  std::vector<tcp::endpoint> endpoints;
  for (const auto& found :
       co_await resolver.async_resolve(address.host, std::to_string(address.port), asio::use_awaitable))
    endpoints.push_back(found.endpoint());
  co_return endpoints;
}

namespace {

// A server that doesn't know AUTH repeats what came with it: the password.
void throw_if_refused(const std::string& command, const Reply& reply) {
  if (command != "AUTH" || !reply.is_error()) return reply.throw_if_error(command);
  const std::string_view text = reply.error_text();
  Reply(Reply::Kind::error, std::string(text.substr(0, text.find(' ')))).throw_if_error(command);
}

}  // namespace

void Handshake::tune(tcp::socket& socket) {
  socket.set_option(tcp::no_delay(true));
  socket.set_option(asio::socket_base::keep_alive(true));
}

asio::awaitable<void> Handshake::greet(tcp::socket& socket, const Address& address, ReplyReader& reader,
                                       std::span<char> buffer) {
  std::vector<Command> hello;
  if (!address.password.empty()) {
    std::vector<Command::Argument> who;
    if (!address.user.empty()) who.emplace_back(address.user);
    who.emplace_back(address.password);
    hello.push_back(command("AUTH", who));
  }
  if (address.database != 0)
    hello.push_back(command("SELECT", std::array{Command::Argument(address.database)}));
  hello.push_back(command("PING", {}));
  std::string bytes;
  for (const auto& one : hello) bytes += one.bytes();
  co_await asio::async_write(socket, asio::buffer(bytes), asio::use_awaitable);

  Reply::Array replies;
  while (replies.size() < hello.size()) {
    const std::size_t got =
        co_await socket.async_read_some(asio::buffer(buffer.data(), buffer.size()), asio::use_awaitable);
    reader.feed({buffer.data(), got}, [&](Reply&& reply) { replies.push_back(std::move(reply)); });
  }
  if (replies.size() > hello.size()) throw ProtocolError("more replies than commands");
  for (std::size_t i = 0; i < hello.size(); ++i) throw_if_refused(hello[i].name(), replies[i]);
  if (replies.back().text() != "PONG") throw ProtocolError("PING wasn't answered with PONG");
}

std::string Handshake::reason_of(const std::exception& error) {
  const auto* system = dynamic_cast<const boost::system::system_error*>(&error);
  return system != nullptr ? system->code().message() : error.what();
}

}  // namespace weir::redis

// Handshake: how every connection to a Redis begins. A detail of the folder.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "weir/redis/address.h"
#include "weir/redis/command.h"
#include "weir/redis/reply_reader.h"

namespace weir::redis {

class Handshake {
 public:
  using tcp = boost::asio::ip::tcp;

  // An address is taken as it is, without asking anybody.
  static boost::asio::awaitable<std::vector<tcp::endpoint>> resolve(tcp::resolver& resolver,
                                                                    const Address& address);
  static void tune(tcp::socket& socket);
  // AUTH, SELECT and PING, answered: only then it is a connection. Throws Error, ProtocolError.
  static boost::asio::awaitable<void> greet(tcp::socket& socket, const Address& address, ReplyReader& reader,
                                            std::span<char> buffer);
  // A command that Command itself refuses, since it changes the connection: SUBSCRIBE.
  static Command command(std::string_view name, std::span<const Command::Argument> arguments) {
    return Command(Command::Unchecked{}, name, arguments);
  }
  // Why it failed; Boost's own text has the place in its sources, too.
  static std::string reason_of(const std::exception& error);
};

}  // namespace weir::redis

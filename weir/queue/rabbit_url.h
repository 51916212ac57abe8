// RabbitAddress: where a RabbitMQ broker is, as whom to speak to it, and whose queues are meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::queue {

struct RabbitAddress {
  std::string host;  // a name or an IP address, IPv6 without brackets
  std::uint16_t port = 5672;
  std::string user = "guest";
  std::string password = "guest";
  std::string vhost = "/";

  // "amqp://[user:password@]host[:port][/vhost]", percent-encoding decoded: the virtual host "/" is written
  // %2F or left away, as are the user and password guest. Throws Unusable with what is wrong with it, and never
  // with any part of the URL, which may hold the password. TLS (amqps) isn't supported and is refused.
  static RabbitAddress parse(std::string_view url);

  // "amqp://user@host:port, virtual host /": for messages; without the password.
  std::string place() const;
};

}  // namespace weir::queue

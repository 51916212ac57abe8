// RawClient: a blocking socket for tests, that sends any bytes and shows what comes back, well-formed or not.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/text.h"

namespace weir::http {

class RawClient {
 public:
  struct Answer {
    unsigned status = 0;  // 0: the server closed without one
    std::string head, body;
    // The field's value, empty when there is none.
    std::string header(std::string_view name) const {
      std::string_view rest = head;
      while (!rest.empty()) {
        std::string_view line = next_item(rest, '\n');
        if (line.ends_with('\r')) line.remove_suffix(1);
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos && same_word(line.substr(0, colon), name)) {
          return std::string(trimmed(line.substr(colon + 1)));
        }
      }
      return {};
    }
  };

  explicit RawClient(std::uint16_t port) { connect(port); }
  RawClient() = default;
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), in_(std::move(other.in_)) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connect(std::uint16_t port) {
    if (socket_ < 0) open();
    if (socket_ < 0) return false;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  void open() {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{20, 0};  // a test should fail, not hang
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  int descriptor() const { return socket_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void stop_sending() { ::shutdown(socket_, SHUT_WR); }

  // False once the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // The next answer; `to_head`: it answers a HEAD, so no body comes.
  Answer receive(bool to_head = false) {
    Answer answer;
    std::size_t end = std::string::npos;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return answer;
    }
    answer.head = in_.substr(0, end + 2);
    in_.erase(0, end + 4);
    answer.status = static_cast<unsigned>(std::atoi(answer.head.c_str() + 9));
    if (to_head) return answer;
    const std::size_t size = std::strtoull(answer.header("Content-Length").c_str(), nullptr, 10);
    while (in_.size() < size) {
      if (!more()) return {};
    }
    answer.body = in_.substr(0, size);
    in_.erase(0, size);
    return answer;
  }
  // Sends and receives.
  Answer ask(std::string_view request) { return send(request) ? receive() : Answer{}; }
  // The server closes, and nothing comes before.
  bool closed() { return in_.empty() && !more() && in_.empty(); }

 private:
  bool more() {
    char bytes[65536];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    in_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  int socket_ = -1;
  std::string in_;
};

inline std::string get(std::string_view target, std::string_view fields = {}) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n";
}
inline std::string post(std::string_view target, std::string_view body, std::string_view fields = {}) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

}  // namespace weir::http

// TcpProxy: stands between a client and a server on 127.0.0.1, and does to their connections what networks do.
// For tests. One thread; it ends with its test.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace weir {

class TcpProxy {
 public:
  explicit TcpProxy(std::uint16_t server)
      : server_(server), listener_(listen(port_)), thread_([this] { run(); }) {}
  ~TcpProxy() {
    ending_ = true;
    thread_.join();
    cut();
    ::close(listener_);
  }
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::uint16_t port() const { return port_; }
  // Ends all connections that there are; new ones are taken.
  void cut() {
    const std::lock_guard lock(mutex_);
    for (const auto& [client, server] : pairs_) {
      ::close(client);
      ::close(server);
    }
    pairs_.clear();
  }
  // Nothing passes any more, and nobody is told; new connections are accepted and get no answer either.
  void freeze(bool frozen) { frozen_ = frozen; }

 private:
  static constexpr int kLookEveryMs = 2;

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  static int listen(std::uint16_t& port) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any = loopback(0);
    socklen_t length = sizeof any;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&any), length) != 0 || ::listen(listener, 64) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&any), &length) != 0)
      throw std::runtime_error("no free port");
    port = ntohs(any.sin_port);
    return listener;
  }

  void run() {
    while (!ending_) {
      if (frozen_) {
        ::poll(nullptr, 0, kLookEveryMs);
        continue;
      }
      const std::lock_guard lock(mutex_);
      std::vector<pollfd> sockets{{listener_, POLLIN, 0}};
      for (const auto& [client, server] : pairs_) {
        sockets.push_back({client, POLLIN, 0});
        sockets.push_back({server, POLLIN, 0});
      }
      if (::poll(sockets.data(), sockets.size(), kLookEveryMs) <= 0) continue;
      std::vector<std::pair<int, int>> kept;
      for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const auto [client, server] = pairs_[i];
        if (pass(sockets[1 + 2 * i], client, server) && pass(sockets[2 + 2 * i], server, client)) {
          kept.push_back(pairs_[i]);
        } else {
          ::close(client);
          ::close(server);
        }
      }
      pairs_ = std::move(kept);
      if (sockets[0].revents != 0) accept();
    }
  }

  void accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in there = loopback(server_);
    if (client >= 0 && ::connect(server, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) {
      pairs_.emplace_back(client, server);
      return;
    }
    ::close(client);
    ::close(server);
  }

  // False when the connection has ended.
  static bool pass(const pollfd& ready, int from, int to) {
    if (ready.revents == 0) return true;
    std::array<char, 65'536> bytes;
    const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
    for (ssize_t sent = 0; sent < count;) {
      const ssize_t now =
          ::send(to, bytes.data() + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
      if (now <= 0) return false;
      sent += now;
    }
    return count > 0;
  }

  const std::uint16_t server_;
  std::uint16_t port_ = 0;
  const int listener_;
  std::atomic<bool> ending_{false}, frozen_{false};
  std::mutex mutex_;
  std::vector<std::pair<int, int>> pairs_;  // client, server
  std::thread thread_;
};

}  // namespace weir

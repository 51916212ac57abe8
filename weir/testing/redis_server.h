// TestServer: a private Redis server on a free port of 127.0.0.1, with an empty temporary folder; it ends, by its
// process id, with its test. For tests and benchmarks. Without a redis-server (Debian's package redis-server)
// its constructor throws: a test that needs one fails then, it isn't skipped.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/redis/address.h"
#include "weir/testing/temp_dir.h"

namespace weir::redis {

class TestServer {
 public:
  // `extra`: more arguments, {"--requirepass", "secret"} say.
  explicit TestServer(std::vector<std::string> extra = {}) : extra_(std::move(extra)) {
    // Another may take the port between our looking and the server's.
    for (int tries = 0; tries < 20; ++tries) {
      port_ = free_port();
      spawn();
      if (wait_until_ready()) return;
      kill();
    }
    throw std::runtime_error("redis-server doesn't start: install Debian's package redis-server");
  }
  ~TestServer() { kill(); }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::uint16_t port() const { return port_; }
  bool running() const { return pid_ > 0; }
  Address address() const { return {.port = port_}; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_) + "/0"; }

  // The process stands still, its sockets stay open; `resume` lets it go on.
  void pause() { ::kill(pid_, SIGSTOP); }
  void resume() { ::kill(pid_, SIGCONT); }
  // Like kill -9. Returns when the process is gone.
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Starts a killed one again, on its port, empty. Returns when it answers.
  void start() {
    for (int tries = 0; tries < 20; ++tries) {
      spawn();
      if (wait_until_ready()) return;
      kill();
    }
    throw std::runtime_error("redis-server doesn't start again");
  }

  static std::uint16_t free_port() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any = loopback(0);
    socklen_t length = sizeof any;
    const bool bound = ::bind(listener, reinterpret_cast<sockaddr*>(&any), length) == 0 &&
                       ::getsockname(listener, reinterpret_cast<sockaddr*>(&any), &length) == 0;
    ::close(listener);
    if (!bound) throw std::runtime_error("no free port");
    return ntohs(any.sin_port);
  }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void spawn() {
    std::vector<std::string> words{
        "redis-server", "--port", std::to_string(port_), "--bind", "127.0.0.1", "--dir", folder_ / "",
        "--save",       "",       "--appendonly",        "no"};
    words.insert(words.end(), extra_.begin(), extra_.end());
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("can't fork");
    if (pid_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
    const int nowhere = ::open("/dev/null", O_RDWR);
    if (nowhere >= 0 && ::dup2(nowhere, STDIN_FILENO) >= 0 && ::dup2(nowhere, STDOUT_FILENO) >= 0)
      ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }

  bool wait_until_ready() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < give_up) {
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = 0;
        return false;
      }
      if (answers()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  // Any reply will do: with a password it is an error.
  bool answers() const {
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in there = loopback(port_);
    const timeval patience{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char first = 0;
    const bool good = ::connect(client, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 &&
                      ::send(client, "PING\r\n", 6, MSG_NOSIGNAL) == 6 && ::recv(client, &first, 1, 0) == 1 &&
                      (first == '+' || first == '-');
    ::close(client);
    return good;
  }

  std::vector<std::string> extra_;
  TempDir folder_;
  std::uint16_t port_ = 0;
  pid_t pid_ = 0;
};

}  // namespace weir::redis

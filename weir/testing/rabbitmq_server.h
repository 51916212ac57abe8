// RabbitmqServer: a private RabbitMQ node, beside a port mapper (epmd) of its own, on free ports of 127.0.0.1, with
// its files in a temporary folder; both end, by their process ids, with their test. For tests. It takes some five
// seconds to start: one for each test program. Without RabbitMQ (Debian's package rabbitmq-server) its
// constructor throws: a test that needs one fails then, it isn't skipped.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/testing/redis_server.h"
#include "weir/testing/temp_dir.h"

namespace weir {

class RabbitmqServer {
 public:
  RabbitmqServer() {
    folder_.file("plugins", "[].\n");
    // Another may take one of the ports between our looking and the server's.
    for (int tries = 0; tries < 3; ++tries) {
      for (auto* port : {&port_, &distribution_port_, &epmd_port_, &tool_port_})
        *port = redis::TestServer::free_port();
      epmd_ = spawn({"epmd", "-port", std::to_string(epmd_port_), "-address", "127.0.0.1"});
      if (launch()) return;
      end(epmd_);
    }
    throw std::runtime_error("RabbitMQ doesn't start: install Debian's package rabbitmq-server");
  }
  ~RabbitmqServer() {
    kill();
    end(epmd_);
  }
  RabbitmqServer(const RabbitmqServer&) = delete;
  RabbitmqServer& operator=(const RabbitmqServer&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return url(port_); }
  // The same node by another way, a proxy's port say.
  static std::string url(std::uint16_t port) {
    return "amqp://guest:guest@127.0.0.1:" + std::to_string(port) + "/%2F";
  }

  // The node stands still, its sockets stay open; `resume` lets it go on.
  void pause() {
    ::kill(node_, SIGSTOP);
    ::waitpid(node_, nullptr, WUNTRACED);
  }
  void resume() { ::kill(node_, SIGCONT); }
  // Like kill -9. Returns when the node is gone.
  void kill() { end(node_); }
  // Starts a killed one again, on its port, with what it had confirmed. Returns when it answers. The node ends
  // with the thread that started it.
  void start() {
    for (int tries = 0; tries < 3; ++tries)
      if (launch()) return;
    throw std::runtime_error("RabbitMQ doesn't start again");
  }
  // Runs rabbitmqctl, which takes seconds.
  void control(std::vector<std::string> words) {
    words.insert(words.begin(), bin("rabbitmqctl"));
    int status = 0;
    ::waitpid(spawn(words), &status, 0);
    if (status != 0) throw std::runtime_error("rabbitmqctl " + words.at(1) + " fails");
  }

 private:
  static std::string bin(const std::string& name) { return "/usr/lib/rabbitmq/bin/" + name; }

  // Debian's wrappers in sbin insist on the account `rabbitmq`; what they wrap, which is called here, doesn't.
  std::vector<std::pair<const char*, std::string>> environment() const {
    return {{"HOME", folder_ / ""},
            {"RABBITMQ_NODENAME", "weir@localhost"},
            {"RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1"},
            {"RABBITMQ_NODE_PORT", std::to_string(port_)},
            {"RABBITMQ_DIST_PORT", std::to_string(distribution_port_)},
            {"RABBITMQ_CTL_DIST_PORT_MIN", std::to_string(tool_port_)},
            {"RABBITMQ_CTL_DIST_PORT_MAX", std::to_string(tool_port_)},
            {"RABBITMQ_CTL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}"},
            {"ERL_EPMD_PORT", std::to_string(epmd_port_)},
            {"ERL_EPMD_ADDRESS", "127.0.0.1"},
            // Started by the node, the port mapper would be a daemon that nobody knows.
            {"ERL_FLAGS", "-start_epmd false"},
            {"RABBITMQ_MNESIA_BASE", folder_ / "data"},
            {"RABBITMQ_LOG_BASE", folder_ / "logs"},
            {"RABBITMQ_PID_FILE", folder_ / "pid"},
            {"RABBITMQ_ENABLED_PLUGINS_FILE", folder_ / "plugins"},
            {"RABBITMQ_CONFIG_FILE", folder_ / "rabbitmq.conf"},
            {"RABBITMQ_ADVANCED_CONFIG_FILE", folder_ / "advanced.config"},
            {"RABBITMQ_CONF_ENV_FILE", folder_ / "env.conf"},
            {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
             "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none"},
            // So the start script becomes the node instead of waiting beside it, and the node reads no input.
            {"RABBITMQ_ALLOW_INPUT", "1"},
            {"RABBITMQ_SERVER_START_ARGS", "-noinput +B i"}};
  }

  bool launch() {
    node_ = spawn({bin("rabbitmq-server")});
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < give_up) {
      if (::waitpid(node_, nullptr, WNOHANG) == node_) {
        node_ = 0;
        return false;
      }
      if (answers()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    kill();
    return false;
  }

  // It listens only when all else is ready, and then greets who speaks AMQP.
  bool answers() const {
    constexpr std::array<char, 8> kHello{'A', 'M', 'Q', 'P', 0, 0, 9, 1};
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port_);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char first = 0;
    const bool good = ::connect(client, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 &&
                      ::send(client, kHello.data(), kHello.size(), MSG_NOSIGNAL) == 8 &&
                      ::recv(client, &first, 1, 0) == 1 && first == 1;  // a method: connection.start
    ::close(client);
    return good;
  }

  pid_t spawn(std::vector<std::string> words) const {
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const auto variables = environment();
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("can't fork");
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
    for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
    const int nowhere = ::open("/dev/null", O_RDWR);
    if (nowhere >= 0 && ::dup2(nowhere, STDIN_FILENO) >= 0 && ::dup2(nowhere, STDOUT_FILENO) >= 0 &&
        ::dup2(nowhere, STDERR_FILENO) >= 0)
      ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }

  static void end(pid_t& pid) {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = 0;
  }

  const TempDir folder_;
  std::uint16_t port_ = 0, distribution_port_ = 0, epmd_port_ = 0, tool_port_ = 0;
  pid_t epmd_ = 0, node_ = 0;
};

}  // namespace weir

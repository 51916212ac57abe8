// KafkaServer: a private Kafka cluster on free ports of 127.0.0.1, in a temporary folder; its brokers end, by their
// process ids, with their test. For tests and benchmarks. The first on a machine fetches the jars (see
// docs/services.md); when Maven Central can't be reached, its constructor throws Unreachable: tests are skipped
// then, and only then.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/testing/temp_dir.h"

namespace weir {

class KafkaServer {
 public:
  class Unreachable : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };

  explicit KafkaServer(int brokers = 1) {
    run({"prepare", folder_.path().string(), std::to_string(brokers)}, "prepared");
    read_prepared();
    for (std::size_t number = 0; number < brokers_.size(); ++number) spawn(number);
    wait();
  }
  ~KafkaServer() {
    for (std::size_t number = 0; number < brokers_.size(); ++number) kill(number);
  }
  KafkaServer(const KafkaServer&) = delete;
  KafkaServer& operator=(const KafkaServer&) = delete;

  std::string url() const {
    std::string text = "kafka://";
    for (const Broker& broker : brokers_)
      text += (text.back() == '/' ? "" : ",") + ("127.0.0.1:" + broker.port);
    return text;
  }

  // The process stands still, its sockets stay open; `resume` lets it go on.
  void pause(std::size_t number = 0) {
    ::kill(brokers_[number].pid, SIGSTOP);
    ::waitpid(brokers_[number].pid, nullptr, WUNTRACED);
  }
  void resume(std::size_t number = 0) { ::kill(brokers_[number].pid, SIGCONT); }
  // Like kill -9. Returns when the process is gone.
  void kill(std::size_t number = 0) {
    Broker& broker = brokers_[number];
    if (broker.pid <= 0) return;
    ::kill(broker.pid, SIGKILL);
    ::waitpid(broker.pid, nullptr, 0);
    broker.pid = 0;
  }
  // Starts a killed one again, on its port, with what it had written. Returns when the cluster can be used. The broker
  // ends with the thread that started it.
  void start(std::size_t number = 0) {
    spawn(number);
    wait();
  }

 private:
  struct Broker {
    std::vector<std::string> command;
    std::string port;
    pid_t pid = 0;
  };

  void read_prepared() {
    std::ifstream prepared(folder_ / "prepared");
    Broker broker;
    std::string line;
    while (std::getline(prepared, line)) {
      if (!line.empty()) {
        broker.command.push_back(line);
        continue;
      }
      brokers_.push_back(std::move(broker));
      broker = {};
    }
    std::istringstream ports(broker.command.empty() ? "" : broker.command.front());
    for (Broker& each : brokers_) ports >> each.port;
    if (brokers_.empty() || brokers_.back().port.empty())
      throw std::runtime_error("scripts/servers/alone.py printed something else");
  }

  void spawn(std::size_t number) { brokers_[number].pid = spawn(brokers_[number].command, "log", "log"); }
  void wait() { run({"wait", folder_.path().string()}, "waited"); }

  // The script's output goes to the file; what it says besides is in what is thrown if it fails.
  void run(const std::vector<std::string>& arguments, const std::string& output) const {
    const auto script =
        std::filesystem::path(__FILE__).parent_path() / ".." / ".." / "scripts" / "servers" / "alone.py";
    std::vector<std::string> words{"python3", script.string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    int status = 0;
    const std::string errors = output + ".errors";
    ::waitpid(spawn(words, output, errors), &status, 0);
    if (status == 0) return;
    std::ifstream file(folder_ / errors);
    std::ostringstream text;
    text << file.rdbuf();
    constexpr int kNotReached = 3;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotReached) throw Unreachable(text.str());
    throw std::runtime_error("no private Kafka: " + text.str());
  }

  pid_t spawn(const std::vector<std::string>& words, const std::string& output,
              const std::string& errors) const {
    std::vector<char*> arguments;
    for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const std::string out_path = folder_ / output, err_path = folder_ / errors;
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("can't fork");
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
    const int nowhere = ::open("/dev/null", O_RDONLY);
    const int out = ::open(out_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int err = ::open(err_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (nowhere >= 0 && out >= 0 && err >= 0 && ::dup2(nowhere, STDIN_FILENO) >= 0 &&
        ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0)
      ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }

  const TempDir folder_;
  std::vector<Broker> brokers_;
};

}  // namespace weir

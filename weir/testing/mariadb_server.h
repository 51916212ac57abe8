// MariadbServer: a private MariaDB server on a free port of 127.0.0.1, in a temporary folder; it ends, by its process
// id, with its test. For tests and benchmarks. Without a mariadbd (Debian's package mariadb-server-core) its
// constructor throws: a test that needs one fails then, it isn't skipped.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/sql/driver.h"
#include "weir/sql/mysql.h"
#include "weir/sql/session.h"
#include "weir/testing/redis_server.h"
#include "weir/testing/temp_dir.h"

namespace weir {

class MariadbServer {
 public:
  // `extra`: more arguments, {"--max-allowed-packet=1M"} say.
  explicit MariadbServer(std::vector<std::string> extra = {}) : extra_(std::move(extra)) {
    const pid_t installer = spawn({"mariadb-install-db", "--no-defaults", "--datadir=" + folder_ / "data",
                                   "--auth-root-authentication-method=normal", "--skip-test-db", "--force"});
    int status = 0;
    ::waitpid(installer, &status, 0);
    if (status != 0)
      throw std::runtime_error("mariadb-install-db fails: install Debian's package mariadb-server-core");
    // Another may take the port between our looking and the server's.
    for (int tries = 0; tries < 5; ++tries) {
      port_ = redis::TestServer::free_port();
      if (launch()) return;
    }
    throw std::runtime_error("mariadbd doesn't start");
  }
  ~MariadbServer() { kill(); }
  MariadbServer(const MariadbServer&) = delete;
  MariadbServer& operator=(const MariadbServer&) = delete;

  std::uint16_t port() const { return port_; }
  // Of a database there; "mysql" is there from the beginning.
  std::string url(const std::string& database) const {
    return "mysql://root@127.0.0.1:" + std::to_string(port_) + '/' + database;
  }
  // A new, empty database; its URL.
  std::string make_database() {
    const std::string name = "test_" + std::to_string(++databases_);
    run("CREATE DATABASE " + name);
    return url(name);
  }
  // Runs statements as the server's root, on a connection of its own.
  void run(const std::string& text) const { root().script({"test", "root", text}); }
  sql::Session root() const {
    return sql::Session(sql::mysql({.url = url("mysql")})->open(sql::detail::Driver::Role::migrator));
  }

  // The process stands still, its sockets stay open; `resume` lets it go on. Returns when all its threads do.
  void pause() {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void resume() { ::kill(pid_, SIGCONT); }
  // Like kill -9. Returns when the process is gone.
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Starts a killed one again, on its port, with what was committed. Returns when it answers. The server ends with
  // the thread that started it.
  void start() {
    for (int tries = 0; tries < 5; ++tries)
      if (launch()) return;
    throw std::runtime_error("mariadbd doesn't start again");
  }

 private:
  bool launch() {
    std::vector<std::string> words{
        "mariadbd", "--no-defaults", "--datadir=" + folder_ / "data", "--socket=" + folder_ / "socket",
        "--port=" + std::to_string(port_), "--bind-address=127.0.0.1", "--skip-name-resolve",
        "--skip-log-bin", "--character-set-server=utf8mb4", "--collation-server=utf8mb4_nopad_bin",
        "--performance-schema=0", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
        // Survives the end of the process, which is all that tests do to it.
        "--innodb-flush-log-at-trx-commit=2"};
    words.insert(words.end(), extra_.begin(), extra_.end());
    pid_ = spawn(std::move(words));
    if (wait_until_ready()) return true;
    kill();
    return false;
  }

  static pid_t spawn(std::vector<std::string> words) {
    if (::geteuid() == 0) words.push_back("--user=root");
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("can't fork");
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
    const int nowhere = ::open("/dev/null", O_RDWR);
    if (nowhere >= 0 && ::dup2(nowhere, STDIN_FILENO) >= 0 && ::dup2(nowhere, STDOUT_FILENO) >= 0 &&
        ::dup2(nowhere, STDERR_FILENO) >= 0)
      ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }

  bool wait_until_ready() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < give_up) {
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = 0;
        return false;
      }
      try {
        root();
        return true;
      } catch (const std::exception&) {  // not yet
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    return false;
  }

  const std::vector<std::string> extra_;
  const TempDir folder_;
  std::uint16_t port_ = 0;
  pid_t pid_ = 0;
  int databases_ = 0;
};

}  // namespace weir

// What the tests of this module stand on: a service over a real SQLite file in a directory of its own.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "site/user/session_repository.h"
#include "site/user/user_repository.h"
#include "site/user/user_service.h"
#include "weir/base/clock.h"
#include "weir/sql/database.h"
#include "weir/telemetry/metrics.h"

namespace weir::site::user {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-user-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::filesystem::path path;
};

// A few I/O threads, as the server has.
class Io {
 public:
  explicit Io(int threads = 2) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { context_.run(); });
  }
  ~Io() {
    work_.reset();
    context_.stop();
    for (auto& thread : threads_) thread.join();
  }
  Io(const Io&) = delete;
  Io& operator=(const Io&) = delete;

  boost::asio::any_io_executor executor() { return context_.get_executor(); }

  template <class T>
  std::future<T> start(boost::asio::awaitable<T> work) {
    return boost::asio::co_spawn(context_, std::move(work), boost::asio::use_future);
  }
  template <class T>
  T run(boost::asio::awaitable<T> work) {
    return start(std::move(work)).get();
  }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  std::vector<std::thread> threads_;
};

// The whole module over one file; making another over the same directory is a restart.
class Module {
 public:
  explicit Module(const std::filesystem::path& directory, UserService::Options options = {})
      : database(database_options(directory)),
        users(user_store, repository_options(clock), io.executor()),
        sessions(session_store, options.refresh_ttl, clock),
        service(users, sessions, options, clock) {}
  ~Module() {
    users.stop();
    service.stop();
    database.stop();
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::optional<Id> sign_up(const std::string& email, const std::string& password = "password 1") {
    return io.run(service.sign_up({email, password, std::nullopt}));
  }
  std::optional<SignedIn> sign_in(const std::string& email, const std::string& password = "password 1",
                                  Entrance entrance = Entrance::tokens) {
    return io.run(service.sign_in(email, password, entrance));
  }
  std::optional<SignedIn> refresh(const std::string& token, Entrance entrance = Entrance::tokens) {
    return io.run(service.refresh(token, entrance));
  }

  ManualClock clock;
  sql::Database database;
  UserStore user_store{database};
  SessionStore session_store{database};
  Io io;
  UserRepository users;
  SessionRepository sessions;
  UserService service;

 private:
  static sql::Options database_options(const std::filesystem::path& directory) {
    sql::Options options;
    options.path = (directory / "weir.db").string();
    options.full_sync = false;
    return options;
  }
  static UserRepository::Options repository_options(const Clock& clock) {
    UserRepository::Options options;
    options.clock = &clock;
    return options;
  }
};

// How often a statement of the module ran in this process.
inline double statements(const std::string& operation) {
  return telemetry::counter("weir_store_queries_total", "Statements that the store was given",
                            {{"module", "user"}, {"operation", operation}})
      .value();
}

}  // namespace weir::site::user

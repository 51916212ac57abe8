// What the tests of this module stand on: a service over a real SQLite file in a directory of its own.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "site/article/article_repository.h"
#include "site/article/article_service.h"
#include "weir/base/clock.h"
#include "weir/sql/database.h"
#include "weir/telemetry/metrics.h"

namespace weir::site::article {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-article-XXXXXX").string();
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

// Two I/O threads, as the server has.
class Io {
 public:
  Io() {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { context_.run(); });
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

// The sum of a metric's series whose line has all these in it.
inline double metric(const std::string& name, const std::vector<std::string>& labels) {
  std::istringstream lines(telemetry::scrape());
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + "{", 0) != 0) continue;
    bool all = true;
    for (const auto& label : labels) all = all && line.find(label) != std::string::npos;
    if (all) sum += std::stod(line.substr(line.rfind(' ')));
  }
  return sum;
}
inline double statements(const std::string& module) {
  return metric("weir_store_queries_total", {"module=\"" + module + "\""});
}

// The module over one file; making another over the same directory is a restart.
class Module {
 public:
  explicit Module(const std::filesystem::path& directory, ArticleService::ReadsOf reads_of = {})
      : database(database_options(directory)),
        repository(store, repository_options(clock), io.executor()),
        service(repository, std::move(reads_of), clock) {}
  ~Module() {
    repository.stop();
    database.stop();
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Id draft(Id author, const std::string& title = "Title", const std::string& content = "Words.") {
    return io.run(service.create(author, title, content)).id;
  }
  Id published(Id author, const std::string& title = "Title", const std::string& content = "Words.") {
    const Id id = draft(author, title, content);
    io.run(service.publish(author, id));
    return id;
  }
  ReaderCopyPtr read(Id id) { return io.run(service.read(id)); }
  Listing mine(Id author, OwnSlice slice = {}) { return io.run(service.mine(author, slice)); }
  Listing newest(NewestSlice slice = {}) { return io.run(service.newest(slice)); }

  ManualClock clock;
  sql::Database database;
  ArticleStore store{database};
  Io io;
  ArticleRepository repository;
  ArticleService service;

 private:
  static sql::Options database_options(const std::filesystem::path& directory) {
    sql::Options options;
    options.path = (directory / "weir.db").string();
    options.full_sync = false;
    return options;
  }
  static ArticleRepository::Options repository_options(const Clock& clock) {
    ArticleRepository::Options options;
    options.clock = &clock;
    return options;
  }
};

}  // namespace weir::site::article

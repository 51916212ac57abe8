// What the tests of this module stand on: a service over a real store.
#pragma once

#include <string>
#include <utility>

#include "site/article/article_repository.h"
#include "site/article/article_service.h"
#include "weir/base/clock.h"
#include "weir/sql/database.h"
#include "weir/sql/store_fixture.h"
#include "weir/testing/io_threads.h"

namespace weir::site::article {

// The module over one store; making another over the same store is a restart.
class Module {
 public:
  explicit Module(const sql::TestStore& test_store, ArticleService::ReadsOf reads_of = {})
      : database(test_store.at()),
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
  std::int64_t published_total() { return newest({.with_total = true}).total.value(); }

  ManualClock clock;
  sql::Database database;
  ArticleStore store{database};
  IoThreads io;
  ArticleRepository repository;
  ArticleService service;

 private:
  static ArticleRepository::Options repository_options(const Clock& clock) {
    ArticleRepository::Options options;
    options.clock = &clock;
    return options;
  }
};

}  // namespace weir::site::article

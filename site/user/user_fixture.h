// What the tests of this module stand on: a service over a real store.
#pragma once

#include <optional>
#include <string>

#include "site/user/session_repository.h"
#include "site/user/user_repository.h"
#include "site/user/user_service.h"
#include "weir/base/clock.h"
#include "weir/sql/database.h"
#include "weir/sql/store_fixture.h"
#include "weir/testing/io_threads.h"

namespace weir::site::user {

// The whole module over one store; making another over the same store is a restart.
class Module {
 public:
  explicit Module(const sql::TestStore& test_store, UserService::Options options = {})
      : database(test_store.at()),
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
  IoThreads io;
  UserRepository users;
  SessionRepository sessions;
  UserService service;

 private:
  static UserRepository::Options repository_options(const Clock& clock) {
    UserRepository::Options options;
    options.clock = &clock;
    return options;
  }
};

// The module on a store that is there, beside the module that a test is about.
class Neighbour {
 public:
  Neighbour(sql::Database& database, IoThreads& io)
      : user_store(database),
        session_store(database),
        users(user_store, {}, io.executor()),
        sessions(session_store, std::chrono::hours(1)),
        service(users, sessions, {}) {}
  ~Neighbour() {
    users.stop();
    service.stop();
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  UserStore user_store;
  SessionStore session_store;
  UserRepository users;
  SessionRepository sessions;
  UserService service;
};

}  // namespace weir::site::user

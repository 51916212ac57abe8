// What the tests of this module stand on: a service over a real SQLite file in a directory of its own.
#pragma once

#include <optional>
#include <string>

#include "site/user/session_repository.h"
#include "site/user/user_repository.h"
#include "site/user/user_service.h"
#include "weir/base/clock.h"
#include "weir/sql/database.h"
#include "weir/testing/io_threads.h"
#include "weir/testing/store.h"

namespace weir::site::user {

// The whole module over one file; making another over the same directory is a restart.
class Module {
 public:
  explicit Module(const TempDir& directory, UserService::Options options = {})
      : database(store_in(directory)),
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

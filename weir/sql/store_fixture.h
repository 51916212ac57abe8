// The stores that the contract of sql::Session, sql::Database and sql::migrate is tested on, each a row of
// kStores. For tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "weir/sql/database.h"
#include "weir/sql/driver.h"
#include "weir/sql/mysql.h"
#include "weir/sql/sqlite.h"
#include "weir/testing/mariadb_server.h"
#include "weir/testing/temp_dir.h"

namespace weir::sql {

// A store that is empty at first and goes away with its test.
class TestStore {
 public:
  TestStore() = default;
  virtual ~TestStore() = default;
  TestStore(const TestStore&) = delete;
  TestStore& operator=(const TestStore&) = delete;

  // `options` with where the store is. More than one Database may be opened on it, at once and later.
  virtual Options at(Options options = {}) const = 0;
  // What messages call it.
  virtual std::string place() const = 0;
  virtual std::unique_ptr<detail::Connection> connect(detail::Driver::Role role) const = 0;
};

class SqliteStore final : public TestStore {
 public:
  Options at(Options options) const override {
    options.path = place();
    options.full_sync = false;
    return options;
  }
  std::string place() const override { return dir_ / "test.db"; }
  std::unique_ptr<detail::Connection> connect(detail::Driver::Role role) const override {
    return detail::sqlite_driver({.path = place(), .full_sync = false})->open(role);
  }

 private:
  TempDir dir_;
};

// One server for all tests of the program, and a database in it for each.
class MariadbStore final : public TestStore {
 public:
  Options at(Options options) const override {
    options.driver = mysql({.url = url_});
    return options;
  }
  std::string place() const override { return url_; }
  std::unique_ptr<detail::Connection> connect(detail::Driver::Role role) const override {
    return mysql({.url = url_})->open(role);
  }

 private:
  static MariadbServer& server() {
    static MariadbServer one;
    return one;
  }
  const std::string url_ = server().make_database();
};

struct StoreKind {
  const char* name;
  std::unique_ptr<TestStore> (*make)();
  friend void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }
};
inline const std::array kStores{
    StoreKind{"Sqlite", []() -> std::unique_ptr<TestStore> { return std::make_unique<SqliteStore>(); }},
    StoreKind{"Mariadb", []() -> std::unique_ptr<TestStore> { return std::make_unique<MariadbStore>(); }},
};
inline std::string name_of_store(const testing::TestParamInfo<StoreKind>& info) {
  return info.param.name;
}

// A suite whose tests (TEST_P) run on each of the stores:
//
//   class Likes : public sql::OnEachStore {};
//   INSTANTIATE_TEST_SUITE_P(Stores, Likes, sql::each_store(), sql::name_of_store);
class OnEachStore : public testing::TestWithParam<StoreKind> {
 protected:
  bool on_sqlite() const { return std::string_view(GetParam().name) == "Sqlite"; }

  const std::unique_ptr<TestStore> test_store = GetParam().make();
};
inline auto each_store() {
  return testing::ValuesIn(kStores);
}

}  // namespace weir::sql

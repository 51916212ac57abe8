// What tests of a Database share. For tests.
#pragma once

#include <latch>
#include <list>
#include <thread>
#include <vector>

#include "weir/sql/database.h"

namespace weir::sql {

// Of a table t (id, v).
inline const Query kInsert{"test", "insert", "INSERT INTO t (id, v) VALUES (?, ?)"};
inline const Query kAdd{"test", "add", "UPDATE t SET v = v + ? WHERE id = ?"};
inline const Query kGet{"test", "get", "SELECT v FROM t WHERE id = ?"};
inline const Query kCount{"test", "count", "SELECT count(*) FROM t"};

// Keeps so many writers busy until it is let go, so that what is written meanwhile waits (and on a store with one
// writer forms one group).
class Hold {
 public:
  explicit Hold(Database& database, int writers = 1) {
    for (int i = 0; i < writers; ++i) {
      std::latch& holding = holding_.emplace_back(1);
      threads_.emplace_back([this, &database, &holding] {
        database.write_now([this, &holding](Session&) {
          holding.count_down();
          let_go_.wait();
        });
      });
      holding.wait();
    }
  }
  ~Hold() {
    let_go_.count_down();
    for (auto& thread : threads_) thread.join();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::list<std::latch> holding_;
  std::latch let_go_{1};
  std::vector<std::thread> threads_;
};

}  // namespace weir::sql

// Session: one connection to the store, with the statements it has prepared.
//
// A Database hands sessions to the functions that it runs; nobody else makes them. Every call may throw
// sql::Error. A session is used by one thread at a time.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "weir/base/id.h"
#include "weir/sql/error.h"
#include "weir/sql/row.h"
#include "weir/sql/value.h"

namespace weir::sql {

namespace detail {
class Connection;
class Driver;
}  // namespace detail

// What a statement did. `rows` are those that it inserted, updated or deleted itself (not by triggers or
// cascades). An updated row counts also when its values were the same before; an upserted row counts once,
// whether it was inserted or updated.
//
// `last_id` is the id that an INSERT of one row gave to it, 0 when it inserted none: so after an INSERT that
// did nothing because the row was there, and after an upsert that updated. MySQL tells no more than that: 0
// after an upsert (ON DUPLICATE KEY UPDATE) that inserted, after an INSERT of several rows and one with
// RETURNING, where SQLite has the last row's id.
struct Changes {
  std::int64_t rows = 0;
  Id last_id = 0;
};

class Session {
 public:
  // A session keeps this many prepared statements, and texts of so many bytes in sum, forgetting those that
  // were not used for longest. Preparing again costs about 10 us.
  static constexpr std::size_t kMaxPrepared = 128;
  static constexpr std::size_t kMaxPreparedBytes = std::size_t{256} * 1024;

  explicit Session(std::unique_ptr<detail::Connection> connection);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Runs a statement whose rows, if it has any, aren't wanted.
  template <Bindable... A>
  Changes execute(const Query& query, const A&... args) {
    return run(query, std::array<Param, sizeof...(A)>{Param(args)...}, {});
  }
  Changes execute(const Query& query, std::span<const Value> args);

  // Calls on_row(const Row&) for each row; when it returns bool, false ends the walk. It may use this
  // session.
  template <class F, Bindable... A>
  void each(const Query& query, F&& on_row, const A&... args) {
    run(query, std::array<Param, sizeof...(A)>{Param(args)...}, OnRow(on_row));
  }
  template <class F>
  void each_of(const Query& query, std::span<const Value> args, F&& on_row) {
    run_of(query, args, OnRow(on_row));
  }

  // The first row as `map` reads it, if there is one; later rows aren't looked at.
  template <class F, Bindable... A>
  auto one(const Query& query, F&& map, const A&... args) {
    std::optional<Mapped<F>> found;
    auto keep = [&](const Row& row) {
      found.emplace(map(row));
      return false;
    };
    each(query, keep, args...);
    return found;
  }
  template <class F>
  auto one_of(const Query& query, std::span<const Value> args, F&& map) {
    std::optional<Mapped<F>> found;
    each_of(query, args, [&](const Row& row) {
      found.emplace(map(row));
      return false;
    });
    return found;
  }

  // All rows as `map` reads them. Whoever asks writes the LIMIT.
  template <class F, Bindable... A>
  auto all(const Query& query, F&& map, const A&... args) {
    std::vector<Mapped<F>> found;
    auto keep = [&](const Row& row) { found.push_back(map(row)); };
    each(query, keep, args...);
    return found;
  }
  template <class F>
  auto all_of(const Query& query, std::span<const Value> args, F&& map) {
    std::vector<Mapped<F>> found;
    each_of(query, args, [&](const Row& row) { found.push_back(map(row)); });
    return found;
  }

  // For code that can't say with Query::mysql alone what is different.
  Dialect dialect() const;
  // What the last statement did; for INSERT .. RETURNING through one, all and each.
  Changes changes() const;
  bool in_transaction() const;

  // Runs several statements without parameters, separated by `;`. For schemas: nothing is kept prepared, and
  // the whole text counts as one query. A statement that changes tables commits on MySQL, so there that is an
  // Error misuse within a transaction.
  void script(const Query& query);

 private:
  friend class Transaction;
  friend class Database;
  template <class F>
  using Mapped = std::remove_cvref_t<std::invoke_result_t<F&, const Row&>>;

  // A reference to a function of a row, without the cost of std::function.
  class OnRow {
   public:
    OnRow() = default;
    template <class F>
      requires(!std::same_as<std::remove_cvref_t<F>, OnRow>)
    explicit OnRow(F& f)
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
          call_([](void* object, const Row& row) {
            F& function = *static_cast<F*>(object);
            if constexpr (std::same_as<std::invoke_result_t<F&, const Row&>, bool>) {
              return function(row);
            } else {
              function(row);
              return true;
            }
          }) {}
    bool wants_rows() const { return call_ != nullptr; }
    bool operator()(const Row& row) const { return call_(object_, row); }

   private:
    void* object_ = nullptr;
    bool (*call_)(void*, const Row&) = nullptr;
  };

  struct Prepared;
  class Cache;
  class Use;

  const std::string& text_of(const Query& query) const;
  // Why the open transaction was given up, if it was.
  const std::optional<Error>& given_up() const { return lost_; }
  Changes run(const Query& query, std::span<const Param> args, OnRow on_row);
  Changes run_of(const Query& query, std::span<const Value> args, OnRow on_row);
  void walk(Prepared& prepared, std::span<const Param> args, OnRow on_row);
  [[noreturn]] void fail(const Query& query, const Error& error);
  // For Transaction: levels are counted here, so that a transaction which the store gave up in the middle is
  // noticed before the next statement would run, and last, outside of it.
  void check_not_lost() const;
  void lose(const Error& error);
  void open_level();
  void close_level(bool commit);
  void control(const std::string& text);

  std::unique_ptr<detail::Connection> connection_;
  std::unique_ptr<Cache> cache_;
  Changes changes_;
  int level_ = 0;
  std::optional<Error> lost_;
};

}  // namespace weir::sql

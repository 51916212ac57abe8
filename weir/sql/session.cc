#include "weir/sql/session.h"

#include <algorithm>
#include <list>
#include <string>
#include <unordered_map>

#include "weir/base/hash.h"
#include "weir/sql/driver.h"
#include "weir/telemetry/metrics.h"

namespace weir::sql {

namespace {

telemetry::Counter counter_of(const Query& query) {
  return telemetry::counter("weir_store_queries_total", "Statements that the store was given",
                            {{"module", query.module}, {"operation", query.operation}});
}

}  // namespace

struct Session::Prepared {
  Prepared(detail::Connection& connection, const Query& q, const std::string& text)
      : query(q), statement(connection.prepare(text)) {
    // A session's own BEGIN, COMMIT and the like have no module.
    if (!q.module.empty()) counter.emplace(counter_of(q));
  }

  Query query;
  std::unique_ptr<detail::Statement> statement;
  std::optional<telemetry::Counter> counter;
  bool in_use = false;
};

// Prepared statements, the latest used first. What is in use stays where it is, and asking for it again gives
// a second one that isn't kept.
class Session::Cache {
 public:
  // The statement, and whether the cache keeps it; if not, the caller does.
  Prepared* find(const Query& query) {
    const auto found = index_.find(&query);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return &order_.front();
  }

  static bool is_worth_keeping(const Query& query) { return size_of(query) <= kMaxPreparedBytes / 8; }

  Prepared& add(detail::Connection& connection, const Query& query, const std::string& text) {
    order_.emplace_front(connection, query, text);
    index_.emplace(&order_.front().query, order_.begin());
    bytes_ += size_of(query);
    order_.front().in_use = true;  // so that making room doesn't take it
    make_room();
    return order_.front();
  }

 private:
  static std::size_t size_of(const Query& query) { return query.text.size() + query.mysql.size(); }

  struct Hash {
    std::size_t operator()(const Query* query) const { return hash64(query->text); }
  };
  struct Equal {
    bool operator()(const Query* a, const Query* b) const {
      return a->text == b->text && a->module == b->module && a->operation == b->operation &&
             a->mysql == b->mysql;
    }
  };

  void make_room() {
    for (auto at = order_.end(); at != order_.begin() && is_too_large();) {
      --at;
      if (at->in_use) continue;
      bytes_ -= size_of(at->query);
      index_.erase(&at->query);
      at = order_.erase(at);
    }
  }
  bool is_too_large() const { return order_.size() > kMaxPrepared || bytes_ > kMaxPreparedBytes; }

  std::list<Prepared> order_;
  std::unordered_map<const Query*, std::list<Prepared>::iterator, Hash, Equal> index_;
  std::size_t bytes_ = 0;
};

// One execution: takes a statement and gives it back clean, however the execution ends.
class Session::Use {
 public:
  Use(Session& session, const Query& query) {
    prepared_ = session.cache_->find(query);
    if (!prepared_ && Cache::is_worth_keeping(query)) {
      prepared_ = &session.cache_->add(*session.connection_, query, session.text_of(query));
    } else if (!prepared_ || prepared_->in_use) {
      own_ = std::make_unique<Prepared>(*session.connection_, query, session.text_of(query));
      prepared_ = own_.get();
    }
    prepared_->in_use = true;
  }
  ~Use() {
    prepared_->statement->reset();
    prepared_->in_use = false;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  Prepared& operator*() const { return *prepared_; }

 private:
  std::unique_ptr<Prepared> own_;
  Prepared* prepared_;
};

Session::Session(std::unique_ptr<detail::Connection> connection)
    : connection_(std::move(connection)), cache_(std::make_unique<Cache>()) {}

Session::~Session() = default;

Dialect Session::dialect() const {
  return connection_->dialect();
}

const std::string& Session::text_of(const Query& query) const {
  return query.mysql.empty() || dialect() != Dialect::mysql ? query.text : query.mysql;
}

Changes Session::changes() const {
  return changes_;
}

bool Session::in_transaction() const {
  return connection_->in_transaction();
}

Changes Session::execute(const Query& query, std::span<const Value> args) {
  return run_of(query, args, {});
}

Changes Session::run_of(const Query& query, std::span<const Value> args, OnRow on_row) {
  std::vector<Param> params;
  params.reserve(args.size());
  for (const Value& value : args) params.emplace_back(value);
  return run(query, params, on_row);
}

Changes Session::run(const Query& query, std::span<const Param> args, OnRow on_row) {
  check_not_lost();
  changes_ = {};
  const bool before = connection_->in_transaction();
  try {
    const Use use(*this, query);
    walk(*use, args, on_row);
  } catch (const Error& error) {
    fail(query, error);
  }
  if (connection_->in_transaction() != before) {
    connection_->roll_back();
    fail(query, Error(ErrorKind::misuse, "a transaction is begun and ended by sql::Transaction only"));
  }
  return changes_;
}

void Session::walk(Prepared& prepared, std::span<const Param> args, OnRow on_row) {
  detail::Statement& statement = *prepared.statement;
  if (static_cast<std::size_t>(statement.parameters()) != args.size())
    throw Error(ErrorKind::misuse, "the statement has " + std::to_string(statement.parameters()) +
                                       " parameters and got " + std::to_string(args.size()));
  for (std::size_t i = 0; i < args.size(); ++i) statement.bind(static_cast<int>(i), args[i]);
  if (prepared.counter) prepared.counter->add();
  const bool writes = statement.writes();
  if (writes) connection_->start_counting();
  const Row row(statement);
  bool more_wanted = on_row.wants_rows();
  while (statement.step()) {
    if (more_wanted) more_wanted = on_row(row);
    // A statement that writes is carried through, whoever stopped looking at what it returns.
    if (!more_wanted && !writes) break;
  }
  changes_ = writes ? connection_->counted() : Changes{};
}

void Session::script(const Query& query) {
  check_not_lost();
  changes_ = {};
  counter_of(query).add();
  const bool before = connection_->in_transaction();
  try {
    connection_->script(text_of(query));
  } catch (const Error& error) {
    fail(query, error);
  }
  if (connection_->in_transaction() != before) {
    connection_->roll_back();
    fail(query, Error(ErrorKind::misuse, "a transaction is begun and ended by sql::Transaction only"));
  }
}

void Session::fail(const Query& query, const Error& error) {
  Error named(error.kind(), query.module + '.' + query.operation + ": " + error.what(), error.code());
  if (level_ > 0 && !connection_->in_transaction()) lose(named);
  throw named;
}

void Session::check_not_lost() const {
  if (lost_) throw Error(*lost_);
}

void Session::control(const std::string& text) {
  try {
    const Use use(*this, Query{{}, {}, text});
    (*use).statement->step();
  } catch (const Error& error) {
    throw Error(error.kind(), text + ": " + error.what(), error.code());
  }
}

// The text of an error that ended a transaction, for the statements that come too late.
void Session::lose(const Error& error) {
  if (!lost_)
    lost_.emplace(error.kind(), std::string("the transaction was given up: ") + error.what(), error.code());
}

void Session::open_level() {
  check_not_lost();
  try {
    control(level_ == 0 ? std::string(connection_->begin_text())
                        : "SAVEPOINT weir_" + std::to_string(level_));
  } catch (const Error& error) {
    if (level_ > 0 && !connection_->in_transaction()) lose(error);
    throw;
  }
  ++level_;
}

void Session::close_level(bool commit) {
  --level_;
  if (lost_) {
    const Error error = *lost_;
    if (level_ == 0) lost_.reset();
    if (commit) throw Error(error);
    return;
  }
  try {
    if (level_ == 0) {
      control(commit ? "COMMIT" : "ROLLBACK");
    } else {
      const std::string name = "weir_" + std::to_string(level_);
      if (!commit) control("ROLLBACK TO " + name);
      control("RELEASE SAVEPOINT " + name);
    }
  } catch (const Error& error) {
    connection_->roll_back();
    if (level_ > 0) lose(error);
    if (commit) throw;
  }
}

}  // namespace weir::sql

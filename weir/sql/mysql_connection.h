// MysqlConnection: one connection to a MariaDB or MySQL server, made anew when it was lost. Internal; the client
// library's header is seen by the mysql_*.cc files alone.
#pragma once

#include <mysql.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/backoff.h"
#include "weir/base/clock.h"
#include "weir/sql/driver.h"
#include "weir/sql/mysql.h"
#include "weir/sql/mysql_error.h"
#include "weir/sql/mysql_url.h"

namespace weir::sql::detail {

struct MysqlSettings {
  MysqlAddress address;
  MysqlOptions options;
  // How often one of the sessions has connected: that the server is back is news to those that wait.
  std::shared_ptr<std::atomic<std::uint64_t>> connects = std::make_shared<std::atomic<std::uint64_t>>(0);
};

class MysqlConnection final : public Connection {
 public:
  // Connects; as Driver::open.
  MysqlConnection(std::shared_ptr<const MysqlSettings> settings, Driver::Role role);

  Dialect dialect() const noexcept override { return Dialect::mysql; }
  std::unique_ptr<Statement> prepare(const std::string& text) override;
  void script(const std::string& text) override;
  bool in_transaction() const noexcept override { return in_transaction_; }
  std::string_view begin_text() const noexcept override;
  void roll_back() noexcept override;
  void start_counting() noexcept override { counted_ = {}; }
  Changes counted() const noexcept override { return counted_; }

  // For the statements of this connection:

  // What becomes of a request that the connection was lost under.
  enum class Lost {
    repeat,     // it may have been done already, and that does no harm: it is sent once more
    give_up,    // nothing was done: the transaction dies with the connection
    uncertain,  // nobody knows
  };
  // Sends a request, request() -> MysqlOutcome, connecting first if need be. Throws the Error that the fault is.
  template <class Request>
  void ask(Lost lost, Request request) {
    revive();
    const SteadyTime begun = Clock::system().steady_now();
    MysqlOutcome fault = request();
    if (fault && repeats(lost, *fault, begun)) {
      revive();
      fault = request();
    }
    if (fault) raise(lost, *fault);
  }
  // Sends a text that answers with no more than OK; a result is thrown away.
  void ask_text(Lost lost, std::string_view text);

  // Shared, because a statement's rows are read through it, also when the connection is lost meanwhile.
  const std::shared_ptr<MYSQL>& handle() const { return handle_; }
  // Changes with each new connection, which knows nothing of statements prepared on the one before.
  std::uint64_t generation() const { return generation_; }
  // The server's, in bytes.
  std::size_t max_packet() const { return max_packet_; }
  // After a request that went well: whether the server still is in a transaction.
  void note_status();
  void count(Changes changes) { counted_ = changes; }
  // How to treat the loss of a statement.
  Lost when_lost(bool writes) const;

 private:
  void revive();
  void connect();
  void set_options(MYSQL* handle) const;
  void set_up();
  MysqlOutcome query(std::string_view text);
  MysqlOutcome fault() const;
  bool repeats(Lost lost, const MysqlFault& fault, SteadyTime begun);
  [[noreturn]] void raise(Lost lost, const MysqlFault& fault);
  void drop() noexcept;
  std::chrono::milliseconds read_timeout() const;

  const std::shared_ptr<const MysqlSettings> settings_;
  const Driver::Role role_;
  std::shared_ptr<MYSQL> handle_;
  std::uint64_t generation_ = 0;
  bool in_transaction_ = false;
  std::size_t max_packet_ = 0;
  Changes counted_;
  // After a failed connect, none is tried before that time or before another session has connected: whoever calls
  // meanwhile gets the same fault at once.
  Backoff backoff_;
  SteadyTime not_before_{};
  std::uint64_t connects_then_ = 0;
  std::string last_fault_;
};

}  // namespace weir::sql::detail

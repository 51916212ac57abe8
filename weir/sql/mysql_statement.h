// Statements of a MysqlConnection. Internal.
#pragma once

#include <mysql.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "weir/sql/driver.h"
#include "weir/sql/mysql_connection.h"

namespace weir::sql::detail {

// A statement that begins, ends or divides a transaction: a text, because MySQL doesn't prepare most of these.
class MysqlControl final : public Statement {
 public:
  MysqlControl(MysqlConnection& connection, std::string text);

  bool writes() const override { return true; }
  int parameters() const override { return 0; }
  void bind(int, const Param&) override {}
  bool step() override;
  void reset() noexcept override {}
  int columns() const override { return 0; }
  std::string name(int) const override { return {}; }
  Type type(int) const override { return Type::null; }
  std::int64_t integer(int) const override { return 0; }
  double real(int) const override { return 0; }
  std::string_view text(int) const override { return {}; }
  std::span<const std::byte> bytes(int) const override { return {}; }

 private:
  MysqlConnection& connection_;
  const std::string text_;
  const MysqlConnection::Lost lost_;
};

// A statement that the server has prepared, and prepares again on each new connection. Its whole result is
// fetched at once, so that other statements can run while it is walked through.
class MysqlStatement final : public Statement {
 public:
  MysqlStatement(MysqlConnection& connection, std::string text);

  bool writes() const override { return writes_; }
  int parameters() const override { return static_cast<int>(params_.size()); }
  void bind(int index, const Param& param) override;
  bool step() override;
  void reset() noexcept override;
  int columns() const override { return static_cast<int>(columns_.size()); }
  std::string name(int column) const override;
  Type type(int column) const override;
  std::int64_t integer(int column) const override;
  double real(int column) const override;
  std::string_view text(int column) const override;
  std::span<const std::byte> bytes(int column) const override;

 private:
  // How a column is fetched.
  enum class Form { integer, real, decimal, text, blob, foreign };
  struct Column {
    Form form = Form::text;
    std::size_t offset = 0;  // of its bytes in bytes_
    unsigned long length = 0;
    my_bool null = 0;
    std::int64_t integer = 0;
    double real = 0;
  };
  struct CloseStatement {
    void operator()(MYSQL_STMT* statement) const noexcept { mysql_stmt_close(statement); }
  };
  struct FreeResult {
    void operator()(MYSQL_RES* result) const noexcept { mysql_free_result(result); }
  };

  static Form form_of(const MYSQL_FIELD& field);
  MysqlOutcome prepare();
  MysqlOutcome execute();
  MysqlOutcome fault() const;
  void execute_once();
  void count_changes();
  void check_size() const;
  void lay_out_columns();
  std::int64_t decimal(int column) const;
  const Column& at(int column) const { return columns_[static_cast<std::size_t>(column)]; }

  MysqlConnection& connection_;
  const std::string text_;
  bool inserts_, upserts_;
  bool writes_ = false;
  std::shared_ptr<MYSQL> home_;  // what it is prepared on; must outlive it
  std::unique_ptr<MYSQL_STMT, CloseStatement> statement_;
  std::uint64_t generation_ = 0;  // of the connection that it is prepared on
  std::vector<MYSQL_BIND> params_;
  std::vector<std::variant<std::int64_t, double>> numbers_;
  bool executed_ = false;
  // Of the execution.
  std::unique_ptr<MYSQL_RES, FreeResult> metadata_;
  std::vector<Column> columns_;
  std::vector<MYSQL_BIND> results_;
  std::vector<char> bytes_;
};

}  // namespace weir::sql::detail

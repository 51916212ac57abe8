#include "weir/sql/mysql_statement.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "weir/sql/split.h"

namespace weir::sql::detail {
namespace {

// What the fields of a result say of texts that aren't text.
constexpr unsigned kBinaryCharset = 63;
// Bytes that a statement's execution takes beside its parameters, and a parameter beside its bytes: more than
// the protocol needs.
constexpr std::size_t kPacketBytes = 32;
constexpr std::size_t kParameterBytes = 12;
// Not in the client library's header: MySQL's own type of JSON columns.
constexpr int kMysqlJson = 245;

// Where MySQL knows a zero pointer as no value at all.
void* somewhere() {
  static char nothing = 0;
  return &nothing;
}

std::string upper(std::string_view text) {
  std::string capitals(text);
  std::ranges::transform(capitals, capitals.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return capitals;
}

bool reads(std::string_view word) {
  for (const std::string_view reading :
       {"SELECT", "SHOW", "EXPLAIN", "DESCRIBE", "DESC", "WITH", "VALUES", "TABLE"})
    if (word == reading) return true;
  return false;
}

// Rows that an INSERT was given: "Records: 3  Duplicates: 1  Warnings: 0"; for one row of VALUES the server says
// nothing.
std::int64_t records_of(const char* info) {
  constexpr std::string_view kBefore = "Records: ";
  const std::string_view text = info ? info : "";
  std::int64_t records = 1;
  if (text.starts_with(kBefore))
    std::from_chars(text.data() + kBefore.size(), text.data() + text.size(), records);
  return records;
}

}  // namespace

MysqlControl::MysqlControl(MysqlConnection& connection, std::string text)
    : connection_(connection), text_(std::move(text)), lost_([&] {
        const std::string word = first_word(text_);
        if (word == "COMMIT") return MysqlConnection::Lost::uncertain;
        // Nothing is lost with a transaction that didn't begin.
        return word == "BEGIN" || word == "START" ? MysqlConnection::Lost::repeat
                                                  : MysqlConnection::Lost::give_up;
      }()) {}

bool MysqlControl::step() {
  connection_.ask_text(lost_, text_);
  return false;
}

MysqlStatement::MysqlStatement(MysqlConnection& connection, std::string text)
    : connection_(connection), text_(std::move(text)) {
  const std::string word = first_word(text_);
  inserts_ = word == "INSERT" || word == "REPLACE";
  upserts_ = inserts_ && upper(text_).find("ON DUPLICATE KEY") != std::string::npos;
  if (text_.size() + kPacketBytes > connection_.max_packet())
    throw Error(ErrorKind::constraint, "a statement of " + std::to_string(text_.size()) +
                                           " bytes; the server's max_allowed_packet is " +
                                           std::to_string(connection_.max_packet()));
  // Preparing does nothing, so it may always be done again.
  connection_.ask(connection_.when_lost(false), [this] { return prepare(); });
  const auto count = mysql_stmt_param_count(statement_.get());
  params_.resize(count);
  numbers_.resize(count);
  writes_ = !reads(word) || mysql_stmt_field_count(statement_.get()) == 0;
}

MysqlOutcome MysqlStatement::fault() const {
  const unsigned code = mysql_stmt_errno(statement_.get());
  return MysqlFault{code != 0 ? code : 2027, mysql_stmt_error(statement_.get())};
}

MysqlOutcome MysqlStatement::prepare() {
  if (statement_ && generation_ == connection_.generation()) return std::nullopt;
  metadata_.reset();
  statement_.reset();
  home_ = connection_.handle();
  statement_.reset(mysql_stmt_init(home_.get()));
  if (!statement_) return MysqlFault{2008, "memory ran out"};
  // So that the buffers of a result can be made large enough before its first row.
  const my_bool on = 1;
  mysql_stmt_attr_set(statement_.get(), STMT_ATTR_UPDATE_MAX_LENGTH, &on);
  if (mysql_stmt_prepare(statement_.get(), text_.data(), text_.size()) != 0) {
    const auto failure = fault();
    statement_.reset();
    return failure;
  }
  generation_ = connection_.generation();
  return std::nullopt;
}

void MysqlStatement::bind(int index, const Param& param) {
  MYSQL_BIND& to = params_[static_cast<std::size_t>(index)];
  auto& number = numbers_[static_cast<std::size_t>(index)];
  to = {};
  auto point_to = [&](enum_field_types type, const void* start, std::size_t size) {
    to.buffer_type = type;
    to.buffer = start ? const_cast<void*>(start) : somewhere();
    to.buffer_length = size;
    to.length = &to.buffer_length;
  };
  std::visit(
      [&]<class T>(const T& held) {
        if constexpr (std::same_as<T, std::monostate>) {
          to.buffer_type = MYSQL_TYPE_NULL;
        } else if constexpr (std::same_as<T, std::int64_t>) {
          number = held;
          point_to(MYSQL_TYPE_LONGLONG, &std::get<std::int64_t>(number), sizeof held);
        } else if constexpr (std::same_as<T, double>) {
          if (std::isnan(held))
            throw Error(ErrorKind::misuse, "a parameter is not a number, which would become NULL");
          if (std::isinf(held))
            throw Error(ErrorKind::constraint, "a parameter is infinite, which MySQL can't hold");
          number = held;
          point_to(MYSQL_TYPE_DOUBLE, &std::get<double>(number), sizeof held);
        } else if constexpr (std::same_as<T, Param::Bytes>) {
          point_to(MYSQL_TYPE_BLOB, held.data(), held.size());
        } else {
          point_to(MYSQL_TYPE_STRING, held.data(), held.size());
        }
      },
      param.held());
}

void MysqlStatement::check_size() const {
  std::size_t size = kPacketBytes + kParameterBytes * params_.size();
  for (const MYSQL_BIND& param : params_) size += param.buffer_length;
  if (size > connection_.max_packet())
    throw Error(ErrorKind::constraint, "the parameters take " + std::to_string(size) +
                                           " bytes; the server's max_allowed_packet is " +
                                           std::to_string(connection_.max_packet()));
}

MysqlOutcome MysqlStatement::execute() {
  if (auto failure = prepare()) return failure;
  MYSQL_STMT* const statement = statement_.get();
  if (!params_.empty() && mysql_stmt_bind_param(statement, params_.data()) != 0) return fault();
  if (mysql_stmt_execute(statement) != 0) return fault();
  if (mysql_stmt_field_count(statement) > 0 && mysql_stmt_store_result(statement) != 0) return fault();
  return std::nullopt;
}

void MysqlStatement::execute_once() {
  check_size();
  connection_.ask(connection_.when_lost(writes_), [this] { return execute(); });
  executed_ = true;
  if (mysql_stmt_field_count(statement_.get()) > 0) {
    lay_out_columns();
  } else {
    connection_.note_status();
  }
  if (writes_) count_changes();
}

void MysqlStatement::count_changes() {
  // With CLIENT_FOUND_ROWS these are rows that were found; an upsert counts 2 for a row that it changed, and a
  // REPLACE 2 for one that it replaced, so no more than it was given rows. After RETURNING: the rows returned.
  auto rows = static_cast<std::int64_t>(mysql_stmt_affected_rows(statement_.get()));
  const bool returns = !columns_.empty();
  const std::int64_t records = inserts_ && !returns ? records_of(mysql_info(home_.get())) : rows;
  rows = std::min(rows, records);
  // For several rows the server tells the first id that it made, and for an upsert that updated perhaps the old
  // row's: neither is what Changes promises.
  const bool tells_id = inserts_ && !upserts_ && !returns && records == 1 && rows == 1;
  connection_.count({rows, tells_id ? static_cast<Id>(mysql_stmt_insert_id(statement_.get())) : 0});
}

MysqlStatement::Form MysqlStatement::form_of(const MYSQL_FIELD& field) {
  switch (static_cast<int>(field.type)) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
      return Form::integer;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
      return Form::real;
    case MYSQL_TYPE_DECIMAL:
    case MYSQL_TYPE_NEWDECIMAL:
      return Form::decimal;
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_TIME:
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
    case MYSQL_TYPE_BIT:
      return Form::foreign;
    case kMysqlJson:
      return Form::text;
    default:
      return field.charsetnr == kBinaryCharset ? Form::blob : Form::text;
  }
}

// Gives each column of the result its place, large enough for the longest of its values, and tells the client
// library of it.
void MysqlStatement::lay_out_columns() {
  metadata_.reset(mysql_stmt_result_metadata(statement_.get()));
  if (!metadata_) throw Error(ErrorKind::io, "memory ran out");
  const std::span fields(mysql_fetch_fields(metadata_.get()), mysql_num_fields(metadata_.get()));
  columns_.assign(fields.size(), {});
  results_.assign(fields.size(), {});
  std::size_t size = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    columns_[i].form = form_of(fields[i]);
    columns_[i].offset = size;
    if (columns_[i].form != Form::integer && columns_[i].form != Form::real) size += fields[i].max_length;
  }
  bytes_.resize(size);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    Column& column = columns_[i];
    MYSQL_BIND& to = results_[i];
    to.length = &column.length;
    to.is_null = &column.null;
    if (column.form == Form::integer) {
      to.buffer_type = MYSQL_TYPE_LONGLONG;
      to.buffer = &column.integer;
      to.is_unsigned = (fields[i].flags & UNSIGNED_FLAG) != 0;
    } else if (column.form == Form::real) {
      to.buffer_type = MYSQL_TYPE_DOUBLE;
      to.buffer = &column.real;
    } else {
      to.buffer_type = column.form == Form::blob ? MYSQL_TYPE_BLOB : MYSQL_TYPE_STRING;
      to.buffer = bytes_.empty() ? somewhere() : bytes_.data() + column.offset;
      to.buffer_length = fields[i].max_length;
    }
  }
  if (mysql_stmt_bind_result(statement_.get(), results_.data()) != 0)
    throw Error(ErrorKind::misuse, fault()->text);
}

bool MysqlStatement::step() {
  if (!executed_) execute_once();
  if (columns_.empty()) return false;
  const int code = mysql_stmt_fetch(statement_.get());
  if (code == 1) throw Error(ErrorKind::io, fault()->text);
  return code != MYSQL_NO_DATA;
}

void MysqlStatement::reset() noexcept {
  // The result is in memory already: this never waits for the server.
  if (executed_ && statement_) mysql_stmt_free_result(statement_.get());
  executed_ = false;
  columns_.clear();
  metadata_.reset();
  // One large result isn't kept for ever.
  constexpr std::size_t kKept = 4096;
  if (bytes_.capacity() > kKept) std::vector<char>().swap(bytes_);
}

std::string MysqlStatement::name(int column) const {
  const MYSQL_FIELD* const field = mysql_fetch_field_direct(metadata_.get(), static_cast<unsigned>(column));
  return {field->name, field->name_length};
}

Type MysqlStatement::type(int column) const {
  const Column& held = at(column);
  if (held.null) return Type::null;
  switch (held.form) {
    case Form::integer:
      return Type::integer;
    case Form::real:
      return Type::real;
    case Form::decimal:
      decimal(column);
      return Type::integer;
    case Form::text:
      return Type::text;
    case Form::blob:
      return Type::blob;
    case Form::foreign:
      break;
  }
  throw Error(ErrorKind::misuse,
              "column " + std::to_string(column) + " (" + name(column) +
                  ") is a date, a time or of bits; times are integers of microseconds here");
}

// What sum() of integers is, too.
std::int64_t MysqlStatement::decimal(int column) const {
  const std::string_view digits = text(column);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc() && end == digits.data() + digits.size()) return number;
  throw Error(ErrorKind::misuse,
              "column " + std::to_string(column) + " (" + name(column) + ") holds the DECIMAL " +
                  std::string(digits) +
                  ", which is no 64-bit integer: CAST it to DOUBLE or CHAR in the statement");
}

std::int64_t MysqlStatement::integer(int column) const {
  const Column& held = at(column);
  if (held.form == Form::decimal) return decimal(column);
  if (held.integer < 0 && results_[static_cast<std::size_t>(column)].is_unsigned)
    throw Error(ErrorKind::misuse, "column " + std::to_string(column) + " (" + name(column) + ") holds " +
                                       std::to_string(static_cast<std::uint64_t>(held.integer)) +
                                       ", more than a signed 64-bit integer");
  return held.integer;
}

double MysqlStatement::real(int column) const {
  return at(column).form == Form::real ? at(column).real : static_cast<double>(integer(column));
}

std::string_view MysqlStatement::text(int column) const {
  return {bytes_.data() + at(column).offset, at(column).length};
}

std::span<const std::byte> MysqlStatement::bytes(int column) const {
  const std::string_view held = text(column);
  return {reinterpret_cast<const std::byte*>(held.data()), held.size()};
}

}  // namespace weir::sql::detail

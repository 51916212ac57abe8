#include "weir/sql/row.h"

#include <boost/json/parse.hpp>

#include "weir/sql/driver.h"
#include "weir/sql/error.h"

namespace weir::sql {
namespace {

using detail::Type;

const char* name_of(Type type) {
  switch (type) {
    case Type::null:
      return "NULL";
    case Type::integer:
      return "an integer";
    case Type::real:
      return "a real number";
    case Type::text:
      return "text";
    case Type::blob:
      return "bytes";
  }
  return "nothing";
}

std::string describe(const detail::Statement& statement, int column) {
  return "column " + std::to_string(column) + " (" + statement.name(column) + ")";
}

Type type_of(const detail::Statement& statement, int column) {
  if (column < 0 || column >= statement.columns())
    throw Error(ErrorKind::misuse, "there is no column " + std::to_string(column) + ", there are " +
                                       std::to_string(statement.columns()));
  return statement.type(column);
}

[[noreturn]] void wrong_type(const detail::Statement& statement, int column, Type found, const char* wanted) {
  throw Error(ErrorKind::misuse,
              describe(statement, column) + " holds " + name_of(found) + ", not " + wanted);
}

void check_bytes(const detail::Statement& statement, int column, const char* wanted) {
  const Type type = type_of(statement, column);
  if (type != Type::text && type != Type::blob) wrong_type(statement, column, type, wanted);
}

}  // namespace

bool Row::is_null(int column) const {
  return type_of(*statement_, column) == Type::null;
}

int Row::columns() const {
  return statement_->columns();
}

bool Row::boolean(int column) const {
  const std::int64_t number = integer(column);
  if (number != 0 && number != 1) throw_out_of_range(column, number);
  return number == 1;
}

std::int64_t Row::integer(int column) const {
  const Type type = type_of(*statement_, column);
  if (type != Type::integer) wrong_type(*statement_, column, type, "an integer");
  return statement_->integer(column);
}

double Row::real(int column) const {
  const Type type = type_of(*statement_, column);
  if (type != Type::real && type != Type::integer) wrong_type(*statement_, column, type, "a number");
  return statement_->real(column);
}

std::string_view Row::text(int column) const {
  check_bytes(*statement_, column, "text");
  return statement_->text(column);
}

std::span<const std::byte> Row::bytes(int column) const {
  check_bytes(*statement_, column, "bytes");
  return statement_->bytes(column);
}

boost::json::value Row::json(int column) const {
  boost::system::error_code failure;
  auto value = boost::json::parse(text(column), failure);
  if (failure)
    throw Error(ErrorKind::corrupt,
                describe(*statement_, column) + " holds text that is no JSON: " + failure.message());
  return value;
}

void Row::throw_out_of_range(int column, std::int64_t number) const {
  throw Error(ErrorKind::misuse, describe(*statement_, column) + " holds " + std::to_string(number) +
                                     ", outside of the type that is read");
}

}  // namespace weir::sql

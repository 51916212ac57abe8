#include "weir/sql/mysql_error.h"

#include <algorithm>
#include <array>

namespace weir::sql::detail {
namespace {

struct CodeAndKind {
  unsigned code;
  ErrorKind kind;
};
constexpr auto kUnique = ErrorKind::unique_violation;
constexpr auto kConstraint = ErrorKind::constraint;
constexpr auto kBusy = ErrorKind::busy;
constexpr auto kFull = ErrorKind::full;
constexpr auto kCorrupt = ErrorKind::corrupt;
constexpr auto kIo = ErrorKind::io;

// What isn't here is a mistake in the program.
constexpr auto kKinds = std::to_array<CodeAndKind>({
    {1022, kUnique},     {1062, kUnique},
    {1169, kUnique},     {1586, kUnique},
    {1859, kUnique},     {1048, kConstraint},  // NULL in a NOT NULL column
    {1138, kConstraint}, {1263, kConstraint},
    {1364, kConstraint},  // a column without a default
    {1216, kConstraint},  // foreign keys
    {1217, kConstraint}, {1451, kConstraint},
    {1452, kConstraint}, {1557, kConstraint},
    {3819, kConstraint},                       // CHECK: MySQL, MariaDB
    {4025, kConstraint}, {1264, kConstraint},  // out of the column's range
    {1690, kConstraint}, {1265, kConstraint},  // not a value of the column's type
    {1292, kConstraint}, {1366, kConstraint},
    {1365, kConstraint},  // division by zero
    {1406, kConstraint},  // too long
    {1153, kConstraint},  // larger than max_allowed_packet
    {1301, kConstraint}, {2020, kConstraint},
    {3140, kConstraint},  // no JSON
    {1526, kConstraint},  // no partition for it
    {1644, kConstraint},  // a trigger's SIGNAL
    {1205, kBusy},        // lock wait time-out
    {1213, kBusy},        // deadlock
    {1614, kBusy},       {1689, kBusy},
    {3058, kBusy},       {3572, kBusy},
    {1020, kBusy},  // the row changed since it was read
    {1412, kBusy},  // the table changed since the transaction began
    {1317, kBusy},  // KILL QUERY
    {1969, kBusy},  // the server's limit of a statement's time: MariaDB, MySQL
    {3024, kBusy},       {1021, kFull},
    {1114, kFull},       {1034, kCorrupt},  // a damaged table or index
    {1035, kCorrupt},    {1194, kCorrupt},
    {1195, kCorrupt},    {1712, kCorrupt},
    {1932, kCorrupt},    {3, kIo},  // the server's files: the text may tell that they have no space
    {1004, kIo},         {1005, kIo},
    {1016, kIo},         {1023, kIo},
    {1024, kIo},         {1026, kIo},
    {1030, kIo},         {1105, kIo},
    {1180, kIo},         {1181, kIo},
    {1037, kIo},  // memory
    {1038, kIo},         {1041, kIo},
    {1206, kIo},         {2008, kIo},
    {1040, kIo},  // connections, statements
    {1203, kIo},         {1226, kIo},
    {1461, kIo},         {1044, kIo},  // not this user's right
    {1142, kIo},         {1143, kIo},
    {1227, kIo},         {1290, kIo},  // a server that only reads, a replica say
    {1836, kIo},
});

// Storage engines put the system's or their own number into the text: ENOSPC, EDQUOT, EFBIG, and full tables
// (HA_ERR_RECORD_FILE_FULL, HA_ERR_INDEX_FILE_FULL).
bool tells_of_no_space(std::string_view text) {
  for (const std::string_view piece :
       {"rror 28 ", "rror 122 ", "rror 27 ", "rror 135 ", "rror 136 ", "rrno: 28 ", "rrcode: 28 ",
        "rrno: 122 ", "rrcode: 122 ", "No space left"})
    if (text.find(piece) != std::string_view::npos) return true;
  return false;
}

}  // namespace

bool is_lost(unsigned code) noexcept {
  switch (code) {
    case 1043:  // bad handshake
    case 1047:  // a Galera node that isn't part of its cluster
    case 1053:  // the server is shutting down
    case 1152:  // aborted connection
    case 1156:  // packets out of order, and faults of the network as the server sees them
    case 1157:
    case 1158:
    case 1159:
    case 1160:
    case 1161:
    case 1927:  // MariaDB: the connection was killed
    case 2002:  // can't connect
    case 2003:
    case 2005:  // unknown host
    case 2006:  // server has gone away
    case 2012:  // the handshake broke off
    case 2013:  // lost connection, or a time-out
    case 2026:
    case 2027:  // malformed packet
    case 2055:  // lost connection, with details
    case 2014:  // answers that don't fit their requests any more: the rest of them would be read as another's
    case 2057:  // so after another number of columns than before (SELECT * of a table that was changed)
    case 3169:  // MySQL: the session was killed
    case 4031:  // MySQL: closed for idleness
      return true;
    default:
      return false;
  }
}

bool is_refusal(unsigned code) noexcept {
  switch (code) {
    case 1044:  // no access to this database
    case 1045:  // wrong user or password
    case 1049:  // unknown database
    case 1130:  // not from this host
    case 1251:  // ways of proving who one is that don't fit
    case 1698:
    case 2054:
    case 2058:
    case 2059:
      return true;
    default:
      return false;
  }
}

ErrorKind mysql_kind(unsigned code, std::string_view text) noexcept {
  if (is_lost(code)) return ErrorKind::lost;
  const auto found = std::ranges::find(kKinds, code, &CodeAndKind::code);
  if (found == kKinds.end()) return ErrorKind::misuse;
  return found->kind == ErrorKind::io && tells_of_no_space(text) ? ErrorKind::full : found->kind;
}

}  // namespace weir::sql::detail

#include "weir/sql/mysql_error.h"

namespace weir::sql::detail {
namespace {

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
  switch (code) {
    case 1022:
    case 1062:
    case 1169:
    case 1586:
    case 1859:
      return ErrorKind::unique_violation;
    case 1048:  // NULL in a NOT NULL column
    case 1138:
    case 1263:
    case 1364:  // a column without a default
    case 1216:  // foreign keys
    case 1217:
    case 1451:
    case 1452:
    case 1557:
    case 3819:  // CHECK: MySQL, MariaDB
    case 4025:
    case 1264:  // out of the column's range
    case 1690:
    case 1265:  // not a value of the column's type
    case 1292:
    case 1366:
    case 1365:  // division by zero
    case 1406:  // too long
    case 1153:  // larger than max_allowed_packet
    case 1301:
    case 2020:
    case 3140:  // no JSON
    case 1526:  // no partition for it
    case 1644:  // a trigger's SIGNAL
      return ErrorKind::constraint;
    case 1205:  // lock wait time-out
    case 1213:  // deadlock
    case 1614:
    case 1689:
    case 3058:
    case 3572:
    case 1020:  // the row changed since it was read
    case 1412:  // the table changed since the transaction began
    case 1317:  // KILL QUERY
    case 1969:  // the server's limit of a statement's time: MariaDB, MySQL
    case 3024:
      return ErrorKind::busy;
    case 1021:
    case 1114:
      return ErrorKind::full;
    case 1034:  // a damaged table or index
    case 1035:
    case 1194:
    case 1195:
    case 1712:
    case 1932:
      return ErrorKind::corrupt;
    case 3:  // the server's files
    case 1004:
    case 1005:
    case 1016:
    case 1023:
    case 1024:
    case 1026:
    case 1030:
    case 1105:
    case 1180:
    case 1181:
      return tells_of_no_space(text) ? ErrorKind::full : ErrorKind::io;
    case 1037:  // memory
    case 1038:
    case 1041:
    case 1206:
    case 2008:
    case 1040:  // connections, statements
    case 1203:
    case 1226:
    case 1461:
    case 1044:  // not this user's right
    case 1142:
    case 1143:
    case 1227:
    case 1290:  // a server that only reads, a replica say
    case 1836:
      return ErrorKind::io;
    default:
      return is_lost(code) ? ErrorKind::lost : ErrorKind::misuse;
  }
}

}  // namespace weir::sql::detail

#include "weir/sql/transaction.h"

namespace weir::sql {

Transaction::Transaction(Session& session) : session_(session) {
  session_.open_level();
}

Transaction::~Transaction() {
  if (open_) session_.close_level(false);
}

void Transaction::commit() {
  if (!open_) throw Error(ErrorKind::misuse, "a transaction was committed twice");
  open_ = false;
  session_.close_level(true);
}

}  // namespace weir::sql

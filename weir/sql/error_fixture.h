// What tests of sql::Error share. For tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weir/sql/error.h"

namespace weir::sql {

// For a fixture: what kind of Error something throws, and with what text.
class ErrorWatch {
 protected:
  template <class F>
  ErrorKind kind_of(F&& f) {
    try {
      std::forward<F>(f)();
    } catch (const Error& error) {
      last_text = error.what();
      return error.kind();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorKind::corrupt;
  }

  std::string last_text;
};

}  // namespace weir::sql

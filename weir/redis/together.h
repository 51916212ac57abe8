// Together: a wait for several calls, on several connections, at once. A detail of the folder.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <exception>
#include <memory>
#include <vector>

#include "weir/redis/core.h"

namespace weir::redis {

struct Errand {
  std::shared_ptr<Core> core;
  CallPtr call;
};
struct Outcome {
  std::exception_ptr error;
  Reply reply;
};

// How each ended, in their order, when all have. A cancelled wait ends them all, at once: each with operation_aborted.
boost::asio::awaitable<std::vector<Outcome>> run_together(std::vector<Errand> errands);

}  // namespace weir::redis

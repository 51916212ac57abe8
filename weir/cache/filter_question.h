// FilterQuestion: one question to a membership filter, and how long somebody waits for its answer. Part of
// read_through_core.h.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>

#include "weir/cache/gate.h"
#include "weir/cache/membership.h"

namespace weir::cache::detail {

// Owned by a shared_ptr, which who asks and who answers share. The filter's coroutine runs on a strand of its own.
class FilterQuestion : public std::enable_shared_from_this<FilterQuestion> {
 public:
  explicit FilterQuestion(const boost::asio::any_io_executor& executor)
      : strand_(boost::asio::make_strand(executor)) {}

  // Once. A filter that needs to wait for nothing has answered when this returns, if that runs on the executor.
  void ask(boost::asio::awaitable<Membership> filter);

  // Throws what the filter throws; TimedOut after `limit` (a year at most); operation_aborted when the waiter is
  // cancelled. In both cases the filter is told to stop, and nobody waits for that.
  static boost::asio::awaitable<Membership> answer(std::shared_ptr<FilterQuestion> question,
                                                   std::chrono::milliseconds limit);

 private:
  static boost::asio::awaitable<void> run(std::shared_ptr<FilterQuestion> question,
                                          boost::asio::awaitable<Membership> filter);
  void give_up();

  const boost::asio::strand<boost::asio::any_io_executor> strand_;
  boost::asio::cancellation_signal stop_;  // used on the strand
  const std::shared_ptr<Gate> answered_ = std::make_shared<Gate>();
  std::exception_ptr error_;  // one of the two, before the gate opens
  std::optional<Membership> answer_;
};

}  // namespace weir::cache::detail

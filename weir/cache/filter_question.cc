#include "weir/cache/filter_question.h"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "weir/base/fault.h"

namespace weir::cache::detail {

namespace asio = boost::asio;

void FilterQuestion::ask(asio::awaitable<Membership> filter) {
  // The coroutine's end unwinds through the signal, which has to live until then: so the handler shares it.
  asio::co_spawn(strand_, run(shared_from_this(), std::move(filter)),
                 asio::bind_cancellation_slot(stop_.slot(), [self = shared_from_this()](std::exception_ptr) {
                   asio::post(self->strand_, [self] {});
                 }));
}

// Opens the gate itself: a coroutine's handler comes a turn later.
asio::awaitable<void> FilterQuestion::run(std::shared_ptr<FilterQuestion> question,
                                          asio::awaitable<Membership> filter) {
  std::exception_ptr error;
  std::optional<Membership> answer;
  try {
    answer = co_await std::move(filter);
  } catch (...) {
    error = std::current_exception();
  }
  question->answered_->open([&] {
    question->error_ = std::move(error);
    question->answer_ = answer;
  });
}

asio::awaitable<Membership> FilterQuestion::answer(std::shared_ptr<FilterQuestion> question,
                                                   std::chrono::milliseconds limit) {
  // It is added to a steady clock's time, which must not overflow.
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);
  const auto deadline = std::chrono::steady_clock::now() + std::min(limit, kLongest);
  bool answered = false;
  try {
    answered = co_await question->answered_->wait_until(deadline);
  } catch (...) {
    question->give_up();
    throw;
  }
  if (!answered) {
    question->give_up();
    throw TimedOut("the membership filter took too long");
  }
  if (question->error_) std::rethrow_exception(question->error_);
  co_return *question->answer_;
}

void FilterQuestion::give_up() {
  asio::post(strand_, [self = shared_from_this()] { self->stop_.emit(asio::cancellation_type::terminal); });
}

}  // namespace weir::cache::detail

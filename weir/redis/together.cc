#include "weir/redis/together.h"

#include <atomic>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace weir::redis {

namespace asio = boost::asio;

namespace {

struct Waiting {
  explicit Waiting(std::size_t calls) : outcomes(calls), left(calls) {}
  std::vector<Outcome> outcomes;  // each is written by one handler, and read after the last
  std::atomic<std::size_t> left;
  UniqueFunction<void()> done{};
};

// Who cancels: without owning the calls, which would be a circle (handler, coroutine, slot).
struct Cancels {
  void operator()(asio::cancellation_type type) const {
    if (type == asio::cancellation_type::none) return;
    for (const auto& [weak_core, weak_call] : calls) {
      const auto core = weak_core.lock();
      const auto call = weak_call.lock();
      if (core && call) core->cancel(call);
    }
  }
  std::vector<std::pair<std::weak_ptr<Core>, std::weak_ptr<Call>>> calls;
};

}  // namespace

asio::awaitable<std::vector<Outcome>> run_together(std::vector<Errand> errands) {
  if (errands.empty()) co_return std::vector<Outcome>{};
  const auto waiting = std::make_shared<Waiting>(errands.size());
  // By value: the coroutine may go on, elsewhere, as soon as the last call has begun.
  auto begin = [](auto handler, const std::shared_ptr<Waiting>& state, std::vector<Errand> all) {
    const auto executor =
        asio::prefer(asio::get_associated_executor(handler), asio::execution::outstanding_work.tracked);
    auto slot = asio::get_associated_cancellation_slot(handler);
    state->done = [handler = std::move(handler)]() mutable { std::move(handler)(); };
    Cancels cancels;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].call->executor = executor;
      all[i].call->handler = [state, i](std::exception_ptr error, Reply reply) {
        state->outcomes[i] = {std::move(error), std::move(reply)};
        if (state->left.fetch_sub(1) != 1) return;
        auto done = std::move(state->done);
        done();
      };
      cancels.calls.emplace_back(all[i].core, all[i].call);
    }
    if (slot.is_connected()) slot.assign(std::move(cancels));
    for (const auto& one : all) one.core->begin(one.call);
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(std::move(begin), asio::use_awaitable,
                                                                       waiting, std::move(errands));
  co_return std::move(waiting->outcomes);
}

}  // namespace weir::redis

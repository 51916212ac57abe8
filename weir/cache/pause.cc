#include "weir/cache/pause.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::cache {

namespace asio = boost::asio;
using Nanos = std::chrono::nanoseconds;

asio::awaitable<void> timer_pause(Nanos time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<bool> opened_within(std::shared_ptr<Gate> gate, Nanos limit, Pause pause) {
  using namespace asio::experimental::awaitable_operators;
  std::exception_ptr cancelled;
  try {
    const auto first = co_await (gate->wait() || pause(limit));
    co_return first.index() == 0;
  } catch (const asio::multiple_exceptions& both) {
    cancelled = both.first_exception();
  }
  std::rethrow_exception(cancelled);
}

struct SimulatedTime::State {
  std::shared_ptr<Gate> until(Nanos time) {
    auto gate = std::make_shared<Gate>();
    const std::lock_guard lock(mutex);
    gates.emplace(clock.steady_now() + std::max(time, Nanos(0)), gate);
    return gate;
  }
  static asio::awaitable<void> pause(std::shared_ptr<State> state, Nanos time) {
    const auto gate = state->until(time);
    state.reset();
    co_await gate->wait();
  }

  ManualClock clock;
  std::mutex mutex;
  std::multimap<SteadyTime, std::shared_ptr<Gate>> gates;
};

SimulatedTime::SimulatedTime() : state_(std::make_shared<State>()) {}
WallTime SimulatedTime::now() const {
  return state_->clock.now();
}
SteadyTime SimulatedTime::steady_now() const {
  return state_->clock.steady_now();
}
Pause SimulatedTime::pause() const {
  return [state = state_](Nanos time) { return State::pause(state, time); };
}

void SimulatedTime::advance(Nanos by) {
  std::vector<std::shared_ptr<Gate>> due;
  {
    const std::lock_guard lock(state_->mutex);
    state_->clock.advance(by);
    const auto end = state_->gates.upper_bound(state_->clock.steady_now());
    for (auto at = state_->gates.begin(); at != end; ++at) due.push_back(std::move(at->second));
    state_->gates.erase(state_->gates.begin(), end);
  }
  for (const auto& gate : due) gate->open([] {});
}

std::optional<Nanos> SimulatedTime::next() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->gates.empty()) return std::nullopt;
  return state_->gates.begin()->first - state_->clock.steady_now();
}

}  // namespace weir::cache

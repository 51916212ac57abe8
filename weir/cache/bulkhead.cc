#include "weir/cache/bulkhead.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <vector>

#include "weir/base/fault.h"

namespace weir::cache {

struct Bulkhead::State {
  struct Waiter {
    std::shared_ptr<Gate> gate = std::make_shared<Gate>();
    bool admitted = false;
  };
  using Queue = std::list<Waiter>;

  explicit State(BulkheadOptions given) : options(std::move(given)) {
    options.places = std::max<std::size_t>(options.places, 1);
  }

  // Hands the place on, or frees it.
  void leave() {
    std::shared_ptr<Gate> next;
    {
      const std::lock_guard lock(mutex);
      if (queue.empty()) {
        --inside;
        return;
      }
      admitted.splice(admitted.end(), queue, queue.begin());
      admitted.back().admitted = true;
      next = admitted.back().gate;
    }
    // Not under the mutex: where the waiter's executor has gone, opening destroys it here and now.
    next->open([] {});
  }

  BulkheadOptions options;
  std::mutex mutex;
  std::size_t inside = 0;
  bool stopped = false;
  Queue queue;
  Queue admitted;  // and not resumed yet
};

// One who waits. However the wait ends (a coroutine may just be destroyed), it leaves the queue, and a place that
// it was given meanwhile goes on to the next.
struct Bulkhead::Waiter {
  explicit Waiter(std::shared_ptr<State> s) : state(std::move(s)) {}
  ~Waiter() {
    if (take()) state->leave();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // True when it was admitted, the first time.
  bool take() {
    const std::lock_guard lock(state->mutex);
    if (!queued) return false;
    queued = false;
    const bool admitted = at->admitted;
    (admitted ? state->admitted : state->queue).erase(at);
    return admitted;
  }

  const std::shared_ptr<State> state;
  State::Queue::iterator at;
  bool queued = false;
};

Bulkhead::Place::~Place() {
  if (state_) state_->leave();
}

Bulkhead::Bulkhead(BulkheadOptions options) : state_(std::make_shared<State>(std::move(options))) {}

std::optional<Bulkhead::Place> Bulkhead::try_enter() {
  const std::lock_guard lock(state_->mutex);
  if (state_->stopped || state_->inside >= state_->options.places) return std::nullopt;
  ++state_->inside;
  return Place(state_);
}

boost::asio::awaitable<Bulkhead::Place> Bulkhead::enter() {
  return enter_from(state_);
}

boost::asio::awaitable<Bulkhead::Place> Bulkhead::enter_from(std::shared_ptr<State> state) {
  Waiter waiter(state);
  std::shared_ptr<Gate> gate;
  {
    const std::lock_guard lock(state->mutex);
    if (state->stopped) throw Unavailable("the cache is stopping");
    if (state->inside < state->options.places) {
      ++state->inside;
      co_return Place(state);
    }
    if (state->queue.size() >= state->options.max_waiting)
      throw Unavailable("too many loads at once, and too many wait for their turn");
    waiter.at = state->queue.emplace(state->queue.end());
    waiter.queued = true;
    gate = waiter.at->gate;
  }
  co_await opened_within(gate, state->options.patience, state->options.pause);
  if (!waiter.take()) throw Unavailable("too many loads at once: no turn in time");
  co_return Place(state);
}

void Bulkhead::stop() {
  std::vector<std::shared_ptr<Gate>> waiting;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
    for (const auto& waiter : state_->queue) waiting.push_back(waiter.gate);
  }
  for (const auto& gate : waiting) gate->open([] {});
}

std::size_t Bulkhead::inside() const {
  const std::lock_guard lock(state_->mutex);
  return state_->inside;
}
std::size_t Bulkhead::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queue.size();
}

}  // namespace weir::cache

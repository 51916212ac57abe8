// Bulkhead: a bound on how many do something at once, so that one failure doesn't drown what is behind it.
//
// Who finds it full waits for a place, in the order of coming; for a bounded time and in a bounded queue, and is
// then refused with Unavailable. Thread-safe; a coroutine uses it on an executor that runs one of its handlers
// at a time (a strand, say).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "weir/cache/pause.h"

namespace weir::cache {

struct BulkheadOptions {
  std::size_t places = 16;  // at least 1
  std::size_t max_waiting = 1'000;
  std::chrono::milliseconds patience{500};  // of who waits
  Pause pause = timer_pause;
};

class Bulkhead {
  struct State;

 public:
  // Given back when it goes, even after the bulkhead. A default one holds nothing.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept : state_(std::move(other.state_)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(state_, other.state_);
      return *this;
    }
    ~Place();

   private:
    friend class Bulkhead;
    explicit Place(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };

  explicit Bulkhead(BulkheadOptions options);

  // Throws Unavailable when there is no place in time; system_error(operation_aborted) when cancelled.
  boost::asio::awaitable<Place> enter();
  // A place if there is one now.
  std::optional<Place> try_enter();

  // Refuses all who wait, and who comes from now on. Those inside stay there.
  void stop();

  std::size_t inside() const;
  std::size_t waiting() const;

 private:
  struct Waiter;
  static boost::asio::awaitable<Place> enter_from(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace weir::cache

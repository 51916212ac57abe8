// ThreadFlight: the single flight for plain threads. Of many threads that ask for the same thing at the same
// time one does it, the others wait for its value or its error.
//
// Promises: who joins gets that flight's value or the same error; a leader that throws, or whose thread is
// cancelled, leaves nobody waiting and the next call works; a wait ends at its limit (TimedOut) whatever the
// leader does, and ends that wait alone; a key leaves the table when its flight ends, or after a `forget`, when
// later threads start a new flight. Values are shared: R should be cheap to copy, a shared_ptr say. A load that
// asks for its own key waits for itself, until its limit.
// Thread-safe; plain C++20. Coroutines have SingleFlight (single_flight.h), whose loads belong to no caller;
// here the leader works on its own thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/cache/key_hash.h"

namespace weir::cache {

template <class K, class R, class Hash = KeyHash<K>>
class ThreadFlight {
 public:
  ThreadFlight() : open_(0, SeededHash<K, Hash>{secure_random64()}) {}
  ThreadFlight(const ThreadFlight&) = delete;
  ThreadFlight& operator=(const ThreadFlight&) = delete;

  // load() -> R, on this thread if no flight of the key is under way; else its result, waiting `limit` at
  // most (a year, if that is longer).
  template <class Load>
  R run(const K& key, Load load, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
    std::unique_lock lock(mutex_);
    if (const auto at = open_.find(key); at != open_.end()) return wait(lock, at->second, limit);
    const auto flight = std::make_shared<Flight>();
    open_.emplace(key, flight);
    lock.unlock();
    try {
      flight->value.emplace(load());
    } catch (...) {
      flight->error = std::current_exception();
      if (!flight->error) {
        // This thread is being cancelled, or exits: no exception that others could be thrown.
        flight->error = std::make_exception_ptr(Unavailable("the thread that was at it has gone"));
        land(key, flight);
        throw;
      }
    }
    land(key, flight);
    return result(*flight);
  }

  // From now on the key's flight takes nobody new.
  void forget(const K& key) {
    const std::lock_guard lock(mutex_);
    open_.erase(key);
  }
  void forget_all() {
    const std::lock_guard lock(mutex_);
    open_.clear();
  }

 private:
  // A limit is added to a steady clock's time, which must not overflow.
  static constexpr std::chrono::milliseconds kLongestLimit = std::chrono::hours(24 * 365);

  struct Flight {
    std::condition_variable landing;
    bool landed = false;
    std::exception_ptr error;  // the leader's until it has landed, then nobody changes it
    std::optional<R> value;
  };

  static R wait(std::unique_lock<std::mutex>& lock, std::shared_ptr<Flight> flight,
                std::chrono::milliseconds limit) {
    if (!flight->landing.wait_for(lock, std::min(limit, kLongestLimit), [&] { return flight->landed; }))
      throw TimedOut("another's load takes too long");
    lock.unlock();
    return result(*flight);
  }
  static R result(const Flight& flight) {
    if (flight.error) std::rethrow_exception(flight.error);
    return *flight.value;
  }
  void land(const K& key, const std::shared_ptr<Flight>& flight) {
    {
      const std::lock_guard lock(mutex_);
      flight->landed = true;
      const auto at = open_.find(key);
      if (at != open_.end() && at->second == flight) open_.erase(at);
    }
    flight->landing.notify_all();
  }

  std::mutex mutex_;
  std::unordered_map<K, std::shared_ptr<Flight>, SeededHash<K, Hash>> open_;
};

}  // namespace weir::cache

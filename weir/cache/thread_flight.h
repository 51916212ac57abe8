// ThreadFlight: the single flight for plain threads. Of many threads that ask for the same thing at the same
// time one does it, the others wait for its value or its error.
//
// Promises: who joins gets that flight's value or the same error; a leader that throws leaves nobody waiting
// and the next call works; a wait ends at its limit (TimedOut) whatever the leader does; after a `forget`
// later threads start a new flight. Values are shared: R should be cheap to copy, a shared_ptr say.
// Thread-safe; plain C++20. Coroutines have SingleFlight (single_flight.h), whose loads belong to no caller;
// here the leader works on its own thread.
#pragma once

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
  // most.
  template <class Load>
  R run(const K& key, Load load, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
    std::unique_lock lock(mutex_);
    const auto [at, leads] = open_.try_emplace(key);
    if (!leads) return wait(lock, at->second, limit);
    const auto flight = at->second = std::make_shared<Flight>();
    lock.unlock();
    try {
      flight->value.emplace(load());
    } catch (...) {
      flight->error = std::current_exception();
    }
    lock.lock();
    flight->landed = true;
    take_off(key, flight);
    lock.unlock();
    flight->landing.notify_all();
    return result(*flight);
  }

  // From now on the key's flight takes nobody new.
  void forget(const K& key) {
    const std::lock_guard lock(mutex_);
    open_.erase(key);
  }

 private:
  struct Flight {
    std::condition_variable landing;
    bool landed = false;
    std::exception_ptr error;  // the leader's until it has landed, then nobody changes it
    std::optional<R> value;
  };

  static R wait(std::unique_lock<std::mutex>& lock, std::shared_ptr<Flight> flight,
                std::chrono::milliseconds limit) {
    if (!flight->landing.wait_for(lock, limit, [&] { return flight->landed; }))
      throw TimedOut("another's load takes too long");
    lock.unlock();
    return result(*flight);
  }
  static R result(const Flight& flight) {
    if (flight.error) std::rethrow_exception(flight.error);
    return *flight.value;
  }
  void take_off(const K& key, const std::shared_ptr<Flight>& flight) {
    const auto at = open_.find(key);
    if (at != open_.end() && at->second == flight) open_.erase(at);
  }

  std::mutex mutex_;
  std::unordered_map<K, std::shared_ptr<Flight>, SeededHash<K, Hash>> open_;
};

}  // namespace weir::cache

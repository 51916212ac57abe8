// ClientMemory: what a worker's connections hold for their clients (bodies that are coming, answers that
// aren't taken), and who has to go when it is too much. For this folder's own use.
//
// Deadlines bound how long a client may be slow; this bounds what many of them cost together. Over the limit
// the clients that have moved nothing for the longest are cut off first. Who pays for enough traffic to seem
// busier than honest clients can still crowd them out, but not fill the memory. Not thread-safe: each worker
// has its own.
#pragma once

#include <cstddef>
#include <list>

#include "weir/telemetry/metrics.h"

namespace weir::http {

class ClientMemory {
 public:
  // A connection's part. Little is not counted: what every connection may keep costs what its socket costs.
  class Holder {
   public:
    static constexpr std::size_t kUncounted = 16 << 10;

    Holder() = default;
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   protected:
    ~Holder() = default;  // after a `hold(*this, 0)`

   private:
    friend class ClientMemory;
    // Frees what is held, and tells the coroutine, which goes on later, not within the call.
    virtual void give_up() = 0;

    std::size_t bytes_ = 0;
    bool waits_ = false;
    std::list<Holder*>::iterator place_;
  };

  // Limit in bytes.
  explicit ClientMemory(std::size_t limit);
  ~ClientMemory() { gauge_.add(-static_cast<double>(bytes_)); }
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  // The holder has so much now, and has moved on: it is the last to go. With `waits` false it isn't waiting
  // for its client and can't be made to give up. False when there is more than the limit though all others
  // that wait were told to go; a holder that is alone is never too much. O(1) and O(those who go).
  bool hold(Holder& holder, std::size_t bytes, bool waits);

 private:
  void leave(Holder& holder);
  bool make_room(const Holder& holder);

  const std::size_t limit_;
  std::size_t bytes_ = 0;
  std::list<Holder*> waiting_;  // who has moved nothing for the longest comes first
  telemetry::Gauge gauge_;
  telemetry::Counter cut_;
};

}  // namespace weir::http

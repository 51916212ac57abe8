// RightOfWay: side by side, or alone. A detail of database.cc.
//
// Writers that are in each other's way (each has read a row that the other wants to change) could go on being so
// try after try. So a write that met a deadlock runs its next try while no other write of this process does:
// against them it succeeds. Other processes are met with backoff.
#pragma once

#include <condition_variable>
#include <mutex>

namespace weir::sql::detail {

// Thread-safe. Who waits to be alone goes before those who come later.
class RightOfWay {
 public:
  class Hold {
   public:
    Hold(RightOfWay& way, bool alone) : way_(way), alone_(alone) { way_.enter(alone_); }
    ~Hold() { way_.leave(alone_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    RightOfWay& way_;
    const bool alone_;
  };

 private:
  void enter(bool alone) {
    std::unique_lock lock(mutex_);
    if (alone) {
      ++waiting_alone_;
      changed_.wait(lock, [this] { return inside_ == 0; });
      --waiting_alone_;
    } else {
      changed_.wait(lock, [this] { return !taken_ && waiting_alone_ == 0; });
    }
    ++inside_;
    taken_ = alone;
  }
  void leave(bool alone) {
    {
      const std::lock_guard lock(mutex_);
      --inside_;
      if (alone) taken_ = false;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  int waiting_alone_ = 0;
  bool taken_ = false;  // by one who is alone
};

}  // namespace weir::sql::detail

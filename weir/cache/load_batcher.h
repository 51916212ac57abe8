// LoadBatcher: what comes at about the same time is done together.
//
// The first item starts a batch, which is taken at the next turn of the executor; what comes until then is in
// it. So an idle executor adds no latency, and a busy one, which is late anyway, makes larger batches. Nothing
// is lost: when the executor goes away, its batch is handed on as abandoned. Thread-safe.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::cache {

template <class Item>
class LoadBatcher {
 public:
  explicit LoadBatcher(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  // done(std::vector<Item>, bool abandoned) is called once for each batch, on the executor; or wherever that ends,
  // and then the batch is abandoned. The `done` of a batch's first item counts.
  template <class Done>
  void add(Item item, Done done) {
    const std::lock_guard lock(mutex_);
    if (const auto waiting = waiting_.lock(); waiting && waiting->add(item)) return;
    auto batch = std::make_shared<BatchOf<Done>>(std::move(done));
    batch->add(item);
    waiting_ = batch;
    boost::asio::post(executor_, [batch] { batch->close(false); });
  }

 private:
  class Batch {
   public:
    virtual ~Batch() = default;
    // False when it was taken.
    bool add(Item& item) {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      items_.push_back(std::move(item));
      return true;
    }

   protected:
    std::vector<Item> take() {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      return std::exchange(items_, {});
    }

   private:
    std::mutex mutex_;
    bool closed_ = false;
    std::vector<Item> items_;
  };

  template <class Done>
  class BatchOf final : public Batch {
   public:
    explicit BatchOf(Done done) : done_(std::move(done)) {}
    ~BatchOf() override { close(true); }
    void close(bool abandoned) {
      if (auto items = this->take(); !items.empty()) done_(std::move(items), abandoned);
    }

   private:
    Done done_;
  };

  const boost::asio::any_io_executor executor_;
  std::mutex mutex_;
  std::weak_ptr<Batch> waiting_;
};

}  // namespace weir::cache

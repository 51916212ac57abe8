#include "site/lab/small_store.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "site/lab/loop.h"

namespace weir::site {

boost::asio::awaitable<std::optional<std::string>> SmallStore::load(Id key) {
  ++loads_;
  most_at_once_ = std::max(most_at_once_, ++at_once_);
  std::optional<std::string> row;
  if (const auto at = rows_.find(key); at != rows_.end()) row = at->second;
  if (hold_ != nullptr) co_await hold_->wait();
  if (delay_ > delay_.zero()) {
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, delay_);
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
  --at_once_;
  co_return row;
}

}  // namespace weir::site

// How ReadThrough::explain finds out what it tells; see explanation.h.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "weir/cache/explanation.h"
#include "weir/cache/read_through_core.h"

namespace weir::cache::detail {

// Who asks has been cancelled: that is no answer of the filter or of the level.
inline void rethrow_cancellation(const std::exception& error) {
  const auto* const of_system = dynamic_cast<const boost::system::system_error*>(&error);
  if (of_system != nullptr && of_system->code() == boost::asio::error::operation_aborted) throw;
}

template <class Core, class K>
boost::asio::awaitable<void> explain_filter(std::shared_ptr<Core> core, K key, Explanation& told) {
  if (!core->options.membership) co_return;
  try {
    told.membership = co_await Core::ask_filter(core, std::move(key));
  } catch (const std::exception& error) {
    rethrow_cancellation(error);
    told.membership_error = error.what();
  } catch (...) {
    told.membership_error = "what it threw is no std::exception";
  }
}

template <class Core, class K>
boost::asio::awaitable<void> explain_remote(std::shared_ptr<Core> core, K key, Explanation& told) {
  using Remote = Explanation::Remote;
  using Millis = Explanation::Millis;
  if (!core->remote) co_return;
  if (const auto quiet = core->remote->quiet_for(); quiet > Duration::zero()) {
    told.remote = Remote::away;
    told.asked_again = std::chrono::ceil<Millis>(quiet);
    co_return;
  }
  try {
    const auto sight = co_await core->remote->peek(std::move(key));
    told.remote_lease = sight.leased;
    if (sight.known) {
      told.remote = sight.known->value ? Remote::value : Remote::absent;
      told.remote_left = sight.known->left;
      if (sight.known->value) told.remote_age = std::chrono::duration_cast<Millis>(sight.known->age);
    } else {
      told.remote = sight.damaged ? Remote::damaged : sight.leased ? Remote::leased : Remote::nothing;
    }
  } catch (const KeyFault& fault) {
    told.remote = Remote::unusable;
    told.remote_error = fault.what();
  } catch (const std::invalid_argument& unusable) {
    told.remote = Remote::unusable;
    told.remote_error = unusable.what();
  } catch (const std::exception& error) {
    rethrow_cancellation(error);
    told.remote = Remote::failed;
    told.remote_error = error.what();
  }
}

inline Explanation::Then without_remote(OnRemoteError on_error) {
  switch (on_error) {
    case OnRemoteError::availability:
      return Explanation::Then::load_alone;
    case OnRemoteError::protect:
      return Explanation::Then::fail;
    case OnRemoteError::bulkhead:
      break;
  }
  return Explanation::Then::load_in_bulkhead;
}

// The same decisions that a read takes, in its order.
template <class K, class V>
Explanation::Then what_follows(const Explanation& told, const ReadThroughOptions<K, V>& options) {
  using Local = Explanation::Local;
  using Remote = Explanation::Remote;
  using Then = Explanation::Then;
  // A refresh that is under way is joined by nobody who has something to serve.
  if (told.local == Local::stale && !told.under_way) return Then::serve_and_refresh;
  if (told.local != Local::unknown) return Then::serve;
  if (!told.membership_error.empty()) return Then::fail;
  if (told.membership == Membership::absent) return Then::answer_absent;
  if (told.under_way) return Then::join;
  switch (told.remote) {
    case Remote::value:
    case Remote::absent:
      return Then::take_remote;
    case Remote::leased:
      return options.remote.lease ? Then::wait_for_other : Then::load_alone;
    case Remote::damaged:
      return told.remote_lease ? Then::load_alone : Then::load;
    case Remote::unusable:
      return Then::load_alone;
    case Remote::away:
    case Remote::failed:
      return without_remote(options.remote.on_error);
    case Remote::none:
    case Remote::nothing:
      break;
  }
  return Then::load;
}

template <class Core, class K>
boost::asio::awaitable<Explanation> explain(std::shared_ptr<Core> core, K key) {
  using Local = Explanation::Local;
  Explanation told;
  if (const auto hit = core->local.peek(key); hit.known)
    told.local = !hit.value ? Local::absent : hit.stale ? Local::stale : Local::fresh;
  if (const auto entry = core->local.inspect(key); entry && entry->left)
    told.local_left = std::chrono::ceil<Explanation::Millis>(*entry->left);
  told.under_way = core->flights.open(key);
  if (told.local == Local::unknown) co_await explain_filter(core, key, told);
  co_await explain_remote(core, key, told);
  told.then = what_follows(told, core->options);
  co_return told;
}

}  // namespace weir::cache::detail

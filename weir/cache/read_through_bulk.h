// Loads of many keys by one call of the bulk loader: the same steps as for one key, side by side. Part of
// read_through_core.h; use read_through.h.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/random.h"
#include "weir/cache/read_through_core.h"

namespace weir::cache::detail {

// Lands what is known here already and what the remote level knows; hands on what another node loads; leaves the
// rest in `rows`.
template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::find_courses(Self self, std::vector<Row>& rows,
                                               std::vector<FlightPtr>& elsewhere)
    -> Awaitable<Bulkhead::Place> {
  if (!self->remote || rows.empty()) co_return Bulkhead::Place{};
  std::vector<K> keys;
  keys.reserve(rows.size());
  for (const Row& row : rows) keys.push_back(row.key());
  auto asked = co_await self->remote->ask_many(std::move(keys));
  bool away = false;
  std::vector<Row> left;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows[i];
    if (asked[i].turn == Turn::known) {
      self->adopt(row.key(), row.lease, asked[i], row.item.plan);
      self->flights.land(row.item.flight, std::move(asked[i].value));
      continue;
    }
    if (asked[i].turn == Turn::held) {
      elsewhere.push_back(row.item.flight);
      self->launch(row.item);  // with patience, and beside the others
      continue;
    }
    if (asked[i].turn == Turn::ours) row.to_share = std::move(asked[i].lease);
    away = away || asked[i].turn == Turn::away;
    left.push_back(std::move(row));
  }
  rows = std::move(left);
  if (!away) co_return Bulkhead::Place{};
  co_return co_await fall_back(self);
}

template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::load_rows_from_store(Self self, std::vector<Row>& rows, Duration& took)
    -> Awaitable<void> {
  std::vector<K> keys;
  keys.reserve(rows.size());
  for (const Row& row : rows) keys.push_back(row.key());
  self->metrics.batches.add();
  self->metrics.batched_keys.add(static_cast<double>(keys.size()));
  const SteadyTime began = self->options.clock->steady_now();
  auto found = co_await self->options.bulk_load(std::move(keys));
  took = self->options.clock->steady_now() - began;
  std::unordered_map<K, Value, SeededHash<K, Hash>> values(0, SeededHash<K, Hash>{secure_random64()});
  for (auto& [key, value] : found)
    values.emplace(std::move(key), std::make_shared<const V>(std::move(value)));
  for (Row& row : rows)
    if (const auto at = values.find(row.key()); at != values.end()) row.value = at->second;
}

// Fills both levels; what a write came before is in neither.
template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::share_rows(Self self, std::vector<Row>& rows, Duration took)
    -> Awaitable<void> {
  std::vector<typename Remote::Offer> offers;
  std::vector<Row*> offered;
  for (Row& row : rows) {
    row.keep = row.value || row.item.plan.keep_absence;
    if (!row.to_share || !row.keep) continue;
    offers.push_back(
        {row.key(), std::move(*row.to_share), row.value, self->ttl_for(row.item.plan, row.value)});
    row.to_share.reset();
    offered.push_back(&row);
  }
  if (!offers.empty()) {
    const auto ends = co_await self->remote->share(std::move(offers), took);
    for (std::size_t i = 0; i < ends.size(); ++i)
      if (ends[i] == Remote::Shared::refused) offered[i]->keep = false;
  }
  for (Row& row : rows) {
    if (row.keep) {
      self->fill(row.key(), row.lease, row.value,
                 {.ttl = self->ttl_for(row.item.plan, row.value), .took = took});
    } else if (row.value) {
      self->metrics.refused_fills.add();
    }
    self->flights.land(row.item.flight, row.value);
  }
  co_await give_back(self, rows);
}

// The leases that nothing was shared under: a round trip each, so when nobody waits for the rows any more.
template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::give_back(Self self, std::vector<Row>& rows) -> Awaitable<void> {
  if (!self->remote) co_return;
  co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
  for (Row& row : rows)
    if (auto lease = std::exchange(row.to_share, std::nullopt))
      co_await self->remote->give_back(row.key(), std::move(*lease));
}

// One call of the bulk loader. Lands its rows, with what was read or with why not.
template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::load_rows(Self self, std::vector<Row> rows, Bulkhead::Place place)
    -> Awaitable<void> {
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  Duration took{0};
  std::exception_ptr error;
  try {
    co_await load_rows_from_store(self, rows, took);
  } catch (...) {
    error = std::current_exception();
  }
  place = {};
  const bool in_time = state.cancelled() == boost::asio::cancellation_type::none;
  if (self->remote)
    co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
  if (error) {
    if (in_time) self->count_error(error, false);
    for (const Row& row : rows) self->flights.land(row.item.flight, error);
    co_return co_await give_back(self, rows);
  }
  if (in_time) {
    const bool any = std::ranges::any_of(rows, [](const Row& row) { return row.value != nullptr; });
    (any ? self->metrics.load_ok : self->metrics.load_absent).add();
    for (const Row& row : rows) (row.value ? self->metrics.store_hit : self->metrics.store_miss).add();
  }
  co_await share_rows(self, rows, took);
}

template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::load_bulk(Self self, std::vector<Item> items)
    -> Awaitable<std::vector<Value>> {
  std::vector<Row> rows;  // what no flight before this one has filled
  for (Item& item : items) {
    const K& key = Flights::key_of(item.flight);
    if (auto hit = self->local.peek(key); hit.known) {
      self->flights.land(item.flight, std::move(hit.value));
    } else {
      rows.push_back({item, self->leases.take(key)});
    }
  }
  std::vector<FlightPtr> elsewhere;
  std::exception_ptr refused;
  Bulkhead::Place place;
  try {
    place = co_await find_courses(self, rows, elsewhere);
  } catch (const Unavailable&) {
    refused = std::current_exception();
  }
  if (refused) {
    // A part of the level may be away, and another has given its leases: those load all the same.
    std::vector<Row> leased;
    for (Row& row : rows) {
      if (row.to_share) {
        leased.push_back(std::move(row));
      } else {
        self->flights.land(row.item.flight, refused);
      }
    }
    rows = std::move(leased);
  }
  if (!rows.empty()) co_await load_rows(self, std::move(rows), std::move(place));
  // This load's deadline is theirs too.
  for (const auto& flight : elsewhere) {
    try {
      co_await self->flights.wait(flight);
    } catch (...) {
      continue;  // those who wait for it are told
    }
  }
  co_return std::vector<Value>(items.size());  // all have landed
}

}  // namespace weir::cache::detail

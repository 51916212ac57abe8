// What the tests of this module stand on: the whole module over a real store.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "site/interaction/interaction_repository.h"
#include "site/interaction/interaction_service.h"
#include "weir/queue/embedded_queue.h"
#include "weir/queue/journal.h"
#include "weir/queue/producer.h"
#include "weir/sql/database.h"
#include "weir/sql/store_fixture.h"
#include "weir/testing/io_threads.h"

namespace weir::site::interaction {

// Articles are there unless they are in `gone`, and are called "title 7"; other things are always there.
class Module {
 public:
  explicit Module(const sql::TestStore& test_store)
      : database(test_store.at()),
        repository(interactions, collections, history, io.executor(), repository_options(clock)),
        journal({.directory = directory.path().string(),
                 .size = std::size_t{1} << 20,
                 .lanes = 2,
                 .clock = &clock}),
        queue(queue_options(directory, clock)),
        producer(journal, queue, {.linger = std::chrono::milliseconds(1)}),
        service(repository, &producer, {exists(), titles()}, clock) {}
  ~Module() {
    producer.stop();
    repository.stop();
    database.stop();
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Counts counts(Id id, const std::string& biz = "article") { return io.run(service.counts(biz, id)); }
  Outcome like(Id user, Id article) { return io.run(service.like(user, {"article", article})); }
  Outcome unlike(Id user, Id article) { return io.run(service.unlike(user, {"article", article})); }
  Outcome collect(Id user, Id article, std::optional<Id> folder = {}) {
    return io.run(service.collect(user, {"article", article}, folder));
  }
  Outcome uncollect(Id user, Id article, std::optional<Id> folder = {}) {
    return io.run(service.uncollect(user, {"article", article}, folder));
  }
  Mine mine(Id user, Id article) { return io.run(service.mine(user, "article", article)); }
  std::vector<Folder> folders(Id user) { return io.run(service.folders(user, {})).items; }
  // The ids of what is in the folder.
  std::vector<Id> items(Id user, Id folder, EntrySlice slice = {}) {
    std::vector<Id> ids;
    const auto listing = io.run(service.items(user, folder, slice)).value();
    for (const auto& item : listing.items) ids.push_back(item.entry.subject.id);
    return ids;
  }
  std::vector<Id> read_history(Id user, EntrySlice slice = {}) {
    std::vector<Id> ids;
    const auto listing = io.run(service.history(user, slice));
    for (const auto& item : listing.items) ids.push_back(item.entry.subject.id);
    return ids;
  }
  // Runs a statement behind everybody's back.
  void sabotage(const std::string& text) {
    database.write_now([&](sql::Session& session) { session.execute(sql::Query{"test", "test", text}); });
  }

  TempDir directory;
  ManualClock clock;
  std::set<Id> gone;
  sql::Database database;
  InteractionStore interactions{database};
  CollectionStore collections{database};
  HistoryStore history{database};
  IoThreads io;
  InteractionRepository repository;
  queue::Journal journal;
  queue::EmbeddedQueue queue;
  queue::Producer producer;
  InteractionService service;

 private:
  static InteractionRepository::Options repository_options(const Clock& clock) {
    InteractionRepository::Options options;
    options.clock = &clock;
    return options;
  }
  static queue::EmbeddedQueue::Options queue_options(const TempDir& directory, const Clock& clock) {
    queue::EmbeddedQueue::Options options;
    options.path = directory / "queue.db";
    options.partitions = 2;
    options.clock = &clock;
    return options;
  }
  InteractionService::Exists exists() {
    return [this](std::string_view biz, Id id) -> boost::asio::awaitable<bool> {
      co_return biz != "article" || !gone.contains(id);
    };
  }
  InteractionService::Titles titles() {
    return [this](std::string_view biz,
                  std::vector<Id> ids) -> boost::asio::awaitable<std::vector<std::optional<std::string>>> {
      std::vector<std::optional<std::string>> titles;
      for (const Id id : ids)
        titles.push_back(biz == "article" && !gone.contains(id) ? std::optional("title " + std::to_string(id))
                                                                : std::nullopt);
      co_return titles;
    };
  }
};

// The road that reads take, with nobody at its end.
class ReadRoad {
 public:
  explicit ReadRoad(const TempDir& directory)
      : journal({.directory = directory.path().string(), .size = std::size_t{1} << 20}),
        queue({.path = directory / "queue.db"}),
        producer(journal, queue, {}) {
    queue.create_topic(std::string(kReadTopic));
  }
  ~ReadRoad() {
    producer.stop();
    queue.stop();
  }
  ReadRoad(const ReadRoad&) = delete;
  ReadRoad& operator=(const ReadRoad&) = delete;

  // How many have been recorded so far.
  std::int64_t reads() {
    EXPECT_TRUE(producer.flush(std::chrono::seconds(10)));
    const auto ends = queue.ends(std::string(kReadTopic));
    return std::accumulate(ends.begin(), ends.end(), std::int64_t{0});
  }

  queue::Journal journal;
  queue::EmbeddedQueue queue;
  queue::Producer producer;
};

// The module on a store that is there, beside the module that a test is about.
class Neighbour {
 public:
  Neighbour(sql::Database& database, IoThreads& io, queue::Producer* producer = nullptr)
      : interactions(database),
        collections(database),
        history(database),
        repository(interactions, collections, history, io.executor(), {}),
        service(repository, producer) {}
  ~Neighbour() { repository.stop(); }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  InteractionStore interactions;
  CollectionStore collections;
  HistoryStore history;
  InteractionRepository repository;
  InteractionService service;
};

// Messages as a queue would deliver them.
class Delivery {
 public:
  explicit Delivery(std::uint64_t producer = 1) : producer_(producer) {}

  // A read of the thing by `user` at that time.
  Delivery& read(std::string key, Id user, WallTime at, std::string event_id = {}) {
    char payload[kReadPayloadBytes];
    encode_read(user, payload);
    texts_.push_back({std::move(key), std::string(payload, sizeof payload), std::move(event_id), at});
    return *this;
  }
  std::vector<queue::Message> messages() const {
    std::vector<queue::Message> all;
    for (const Text& text : texts_) {
      queue::Message message;
      message.topic = kReadTopic;
      message.key = text.key;
      message.payload = text.payload;
      message.event_id = text.event_id;
      message.producer = producer_;
      message.sequence = all.size() + 1;
      message.appended_at = text.at;
      message.offset = static_cast<std::int64_t>(all.size());
      all.push_back(message);
    }
    return all;
  }

 private:
  struct Text {
    std::string key, payload, event_id;
    WallTime at;
  };
  std::uint64_t producer_;
  std::vector<Text> texts_;
};

}  // namespace weir::site::interaction

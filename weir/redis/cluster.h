// Cluster: a Client's route to the nodes of a Redis Cluster ("Redis cluster specification", MOVED and ASK redirection).
// What it promises is said in client.h; who has which slots is ClusterMap's business. A detail of the folder.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/redis/cluster_map.h"
#include "weir/redis/route.h"

namespace weir::redis {

class Cluster final : public Route, public std::enable_shared_from_this<Cluster> {
 public:
  // How often in a row a command is sent on (MOVED, ASK, NOSCRIPT). Three happen: a move whose end was missed, the
  // slot's next move, and a script that the new node doesn't know.
  static constexpr unsigned kMaxRedirects = 5;

  Cluster(const boost::asio::any_io_executor& executor, Options options);
  void start() { map_->start(); }

  Awaitable<Reply> execute(Command command, Patience timeout) override;
  Awaitable<Reply::Array> pipeline(std::vector<Command> commands, Patience timeout) override;
  Awaitable<Reply::Array> transaction(std::vector<Command> commands, Patience timeout) override;
  Awaitable<Reply> eval(Script script, ScriptCall call, Patience timeout) override;
  Awaitable<Reply::Array> eval_many(Script script, std::vector<ScriptCall> calls, Patience timeout) override;

  void stop() override { map_->stop(); }
  bool connected() const override { return map_->connected(); }
  std::size_t waiting() const override { return map_->waiting() + parked_; }
  std::size_t group_of(std::string_view key) const override { return slot_of(key); }
  std::vector<Address> nodes() const override { return map_->nodes(); }

 private:
  struct Piece;
  using Pieces = std::vector<Piece>;
  using Way = std::vector<Piece*>;  // some of them, which stay where they are
  struct Group;
  // Of a whole call, whatever is tried in it.
  struct Time {
    SteadyTime begun, deadline;
  };
  class Parking;
  struct Outcome {
    std::exception_ptr error;
    Reply reply;
  };

  static Way all_of(Pieces& pieces);
  Time time_for(Patience timeout) const;
  Awaitable<void> settle(Way pieces, Time time);
  Awaitable<void> settle_apart(std::vector<Group> groups, Way pieces, Time time);
  std::vector<Group> gather(const Way& pieces, const Time& time);
  NodePtr node_for(const Piece& piece);
  void sort_out(Group& group, Outcome outcome, const Time& time);
  void answered(Piece& piece, const NodePtr& by, Reply::Array replies, const Time& time);
  void redirected(Piece& piece, const Redirect& redirect);
  void failed(Piece& piece, const NodePtr& by, std::exception_ptr error, const Time& time);
  void later(Piece& piece, const Time& time);
  std::exception_ptr nobody_for(const Piece& piece) const;
  bool may_wait(const Piece& piece) const;
  static Reply::Array replies_of(Pieces pieces);

  const Options options_;
  const std::shared_ptr<ClusterMap> map_;
  telemetry::Counter moved_, ask_, try_again_, cluster_down_;
  std::atomic<std::size_t> parked_{0}, parked_bytes_{0};  // what waits for another try
};

}  // namespace weir::redis

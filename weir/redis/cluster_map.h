// ClusterMap: what a Cluster knows of its nodes: who has which slots, and a connection to each that was needed.
//
// The map is asked of any node (CLUSTER SLOTS) at the start, whenever somebody has found it wrong, and each second or so
// while a node that was needed is away: one look at a time,
// and looks start `refresh_gap` and a jitter apart at least. In between, what MOVED says is remembered. A connection is
// made when it is first needed, and dropped when its node has left the map and the last call on it has ended.
//
// Thread-safe. The looks run on a strand. A detail of the folder.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weir/redis/core.h"
#include "weir/redis/slot_map.h"

namespace weir::redis {

// A connection, for as long as somebody has it.
class Node {
 public:
  Node(const boost::asio::any_io_executor& executor, Options options)
      : core_(std::make_shared<Core>(executor, std::move(options))) {
    core_->start();
  }
  ~Node() { core_->stop(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::shared_ptr<Core>& core() const { return core_; }
  const Address& address() const { return core_->options().address; }

 private:
  const std::shared_ptr<Core> core_;
};
using NodePtr = std::shared_ptr<Node>;

class ClusterMap : public std::enable_shared_from_this<ClusterMap> {
 public:
  // `options.seeds`: not empty.
  ClusterMap(const boost::asio::any_io_executor& executor, Options options);

  void start();
  // Ends what runs on its connections.
  void stop();

  // Who has the slot; null: it isn't known.
  NodePtr node_of(Slot slot);
  // One that isn't known to be away, connected if there is one; null: there is none.
  NodePtr any_node();
  // Who was named by a redirection; null: there are too many already.
  NodePtr node_at(const Address& address);
  // What MOVED has said.
  void learn(Slot slot, const Address& address);
  // The map seems to be wrong. Returns at once.
  void refresh_soon();

  bool stopped() const { return stopped_; }
  // Whether nobody has told a map yet, and all were asked.
  bool unreachable() const;
  std::string last_failure() const;

  // A map that has all slots, and no node that was needed is away.
  bool connected() const;
  std::size_t waiting() const;
  // All nodes of the map, or the seeds.
  std::vector<Address> nodes() const;

 private:
  using Lock = std::lock_guard<std::mutex>;
  struct Known {
    Address address;
    NodePtr node{};  // null: not needed yet
  };

  static boost::asio::awaitable<void> keep(std::shared_ptr<ClusterMap> self);
  boost::asio::awaitable<bool> look();
  boost::asio::awaitable<std::optional<SlotMap>> ask(const NodePtr& node);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds time);
  std::vector<Known> whom_to_ask() const;
  void install(const SlotMap& map, const std::vector<Known>& asked);
  NodePtr connect(const Address& address) const;
  NodePtr connected_to(Known& known) const;                        // its connection, made if there is none
  std::optional<std::size_t> index_of(const Address& node) const;  // locked

  const Options options_;
  boost::asio::any_io_executor executor_;
  boost::asio::strand<boost::asio::any_io_executor> strand_;
  boost::asio::steady_timer timer_;
  telemetry::Counter looks_ok_, looks_failed_;
  telemetry::Gauge known_nodes_;
  std::atomic<bool> stopped_{false}, wanted_{false};

  mutable std::mutex mutex_;
  std::vector<Known> primaries_;  // and others that a redirection has named
  std::vector<Address> replicas_;
  std::array<std::uint16_t, kSlots> owner_{};
  bool told_ = false;    // a map
  bool failed_ = false;  // the last look
  std::string last_failure_ = "the first look at the cluster is under way";
  NodePtr asked_;  // by the look that is under way
};

}  // namespace weir::redis

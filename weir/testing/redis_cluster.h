// TestCluster: a private Redis Cluster on free ports of 127.0.0.1: three primaries that share the slots, and a replica
// of each. Everything ends, by its process id, with its test.
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/redis/command.h"
#include "weir/redis/reply_reader.h"
#include "weir/testing/redis_server.h"

namespace weir::redis {

class TestCluster {
 public:
  static constexpr std::size_t kPrimaries = 3;
  static constexpr std::size_t kNodes = 6;
  static constexpr int kSlots = 16'384;
  // Without an answer for so long a node counts as dead; a replica takes over soon after.
  static constexpr std::chrono::milliseconds kNodeTimeout{1'000};

  TestCluster() {
    for (std::size_t i = 0; i < kNodes; ++i) add();
    for (std::size_t i = 0; i < kPrimaries; ++i) {
      const int first = kSlots * static_cast<int>(i) / 3;
      const int last = kSlots * static_cast<int>(i + 1) / 3 - 1;
      ask(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)});
      ask(i, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    }
    for (std::size_t i = 1; i < kNodes; ++i) meet(i);
    wait("all know all", [&] { return each([&](std::size_t i) { return known_nodes(i) == kNodes; }); });
    for (std::size_t i = kPrimaries; i < kNodes; ++i) ask(i, {"CLUSTER", "REPLICATE", id(i - kPrimaries)});
    wait("the cluster is up", [&] { return healthy(); });
  }

  TestServer& node(std::size_t index) { return *nodes_[index].server; }
  std::vector<Address> seeds() const {
    std::vector<Address> all;
    for (const auto& one : nodes_) all.push_back(one.server->address());
    return all;
  }

  // Another one, empty, that the others know.
  std::size_t join() {
    const std::size_t index = add();
    meet(index);
    wait("the others know it",
         [&] { return each([&](std::size_t i) { return known_nodes(i) == nodes_.size(); }); });
    return index;
  }

  // What a node answers, over a connection of its own. Throws what it refuses with, and when it doesn't answer.
  Reply ask(std::size_t index, const std::vector<std::string>& words) {
    const std::vector<Command::Argument> arguments(words.begin() + 1, words.end());
    const Command command(words.front(), std::span<const Command::Argument>(arguments));
    const Connection connection(nodes_[index].server->port());
    connection.send(command.bytes());
    Reply reply;
    bool whole = false;
    ReplyReader reader(std::size_t{1} << 20);
    while (!whole) {
      reader.feed(connection.receive(), [&](Reply&& one) {
        reply = std::move(one);
        whole = true;
      });
    }
    reply.throw_if_error(words.front());
    return reply;
  }
  std::string text(std::size_t index, const std::vector<std::string>& words) {
    return ask(index, words).text();
  }

  std::string id(std::size_t index) { return text(index, {"CLUSTER", "MYID"}); }
  // Who has the slot now, by its own word.
  std::size_t owner_of(int slot) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].server->running() && owns(i, slot)) return i;
    throw std::runtime_error("nobody has the slot");
  }
  // Moves a slot as redis-cli does: IMPORTING, MIGRATING, the keys, NODE. `between` is called while it is half moved:
  // after each key, and once before the first.
  template <class F>
  void move_slot(int slot, std::size_t from, std::size_t to, F between) {
    const std::string text = std::to_string(slot);
    ask(to, {"CLUSTER", "SETSLOT", text, "IMPORTING", id(from)});
    ask(from, {"CLUSTER", "SETSLOT", text, "MIGRATING", id(to)});
    between();
    for (;;) {
      const Reply keys = ask(from, {"CLUSTER", "GETKEYSINSLOT", text, "10"});
      if (keys.array().empty()) break;
      for (const Reply& key : keys.array()) {
        ask(from, {"MIGRATE", "127.0.0.1", std::to_string(nodes_[to].server->port()), key.text(), "0", "1000",
                   "REPLACE"});
        between();
      }
    }
    ask(to, {"CLUSTER", "SETSLOT", text, "NODE", id(to)});
    ask(from, {"CLUSTER", "SETSLOT", text, "NODE", id(to)});
  }
  void flush() {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (ask(i, {"ROLE"}).array().front().text() == "master") ask(i, {"FLUSHALL"});
  }

  // Until it is so, at most half a minute.
  template <class F>
  static void wait(const char* what, F so) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!so()) {
      if (std::chrono::steady_clock::now() > give_up)
        throw std::runtime_error(std::string("the Redis Cluster doesn't get there: ") + what);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

 private:
  struct Member {
    std::unique_ptr<TestServer> server;
    std::uint16_t bus;
  };
  // Blocks, two seconds at most each time.
  class Connection {
   public:
    explicit Connection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
      sockaddr_in there{};
      there.sin_family = AF_INET;
      there.sin_port = htons(port);
      there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      const timeval patience{.tv_sec = 2, .tv_usec = 0};
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      if (::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) return;
      ::close(socket_);
      throw std::runtime_error("a node of the cluster is away");
    }
    ~Connection() { ::close(socket_); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void send(std::string_view bytes) const {
      if (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
        throw std::runtime_error("a node of the cluster doesn't listen");
    }
    std::string receive() const {
      std::string bytes(std::size_t{16} << 10, '\0');
      const auto got = ::recv(socket_, bytes.data(), bytes.size(), 0);
      if (got <= 0) throw std::runtime_error("a node of the cluster doesn't answer");
      bytes.resize(static_cast<std::size_t>(got));
      return bytes;
    }

   private:
    int socket_;
  };

  std::size_t add() {
    const std::uint16_t bus = TestServer::free_port();
    std::vector<std::string> extra{"--cluster-enabled",
                                   "yes",
                                   "--cluster-port",
                                   std::to_string(bus),
                                   "--cluster-node-timeout",
                                   std::to_string(kNodeTimeout.count()),
                                   "--repl-ping-replica-period",
                                   "1",
                                   "--repl-diskless-sync-delay",
                                   "0"};
    nodes_.push_back({std::make_unique<TestServer>(std::move(extra)), bus});
    return nodes_.size() - 1;
  }
  void meet(std::size_t index) {
    ask(index, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[0].server->port()),
                std::to_string(nodes_[0].bus)});
  }
  template <class F>
  bool each(F so) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!so(i)) return false;
    return true;
  }
  // The lines of what it tells of all nodes: id, place, flags, primary, .., from the ninth on its slots.
  std::vector<std::vector<std::string>> told_by(std::size_t index) {
    std::vector<std::vector<std::string>> nodes;
    std::istringstream lines(text(index, {"CLUSTER", "NODES"}));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      nodes.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
    }
    return nodes;
  }
  std::size_t known_nodes(std::size_t index) {
    const auto nodes = told_by(index);
    return static_cast<std::size_t>(std::ranges::count_if(
        nodes, [](const auto& node) { return node[2].find("handshake") == std::string::npos; }));
  }
  bool healthy() {
    return each([&](std::size_t i) {
      return text(i, {"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos &&
             text(i, {"INFO", "replication"}).find("master_link_status:down") == std::string::npos &&
             knows_replicas(i);
    });
  }
  bool knows_replicas(std::size_t index) {
    const Reply slots = ask(index, {"CLUSTER", "SLOTS"});
    return std::ranges::all_of(slots.array(), [](const Reply& range) { return range.array().size() == 4; });
  }
  bool owns(std::size_t index, int slot) {
    for (const auto& node : told_by(index)) {
      if (node[2].find("myself") == std::string::npos) continue;
      for (std::size_t i = 8; i < node.size(); ++i) {
        const auto dash = node[i].find('-');
        if (node[i].front() == '[') continue;  // on its way
        const int first = std::stoi(node[i]);
        const int last = dash == std::string::npos ? first : std::stoi(node[i].substr(dash + 1));
        if (first <= slot && slot <= last) return true;
      }
    }
    return false;
  }

  std::vector<Member> nodes_;
};

}  // namespace weir::redis

// For the tests of the cluster: one real cluster for all of them, and what they look at.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weir/redis/client_fixture.h"
#include "weir/redis/reply_reader.h"
#include "weir/redis/slot.h"
#include "weir/telemetry/metrics.h"
#include "weir/testing/redis_cluster.h"

namespace weir::redis {

// Each of three nodes has a third of the slots: from this one on.
inline constexpr int kThirds[] = {0, 5461, 10922};

// A peer that says what a test wants: the answer to each command, after the greeting. It tells of itself as the only node
// of a cluster, unless the test answers CLUSTER itself. One connection at a time; nothing as an answer ends it.
class FakeNode {
 public:
  using Words = std::vector<std::string>;
  using Answer = std::function<std::optional<std::string>(const Words&)>;

  explicit FakeNode(Answer answer)
      : answer_(std::move(answer)), peer_([this](auto& socket, int) { serve(socket); }) {}
  Address address() const { return peer_.address(); }
  // How often it was asked this.
  int asked(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto at = asked_.find(name);
    return at == asked_.end() ? 0 : at->second;
  }
  std::string map() const {
    const std::string port = std::to_string(address().port);
    return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + port + "\r\n";
  }

 private:
  void serve(FakePeer::Socket& socket) {
    ReplyReader reader(1 << 20);  // commands have the form of replies
    for (;;) {
      char bytes[4096];
      const std::size_t got = socket.read_some(asio::buffer(bytes));
      std::vector<Words> commands;
      reader.feed({bytes, got}, [&](Reply&& command) {
        commands.emplace_back();
        for (const auto& word : command.array()) commands.back().push_back(word.text());
      });
      for (const auto& words : commands) {
        const auto answer = answer_to(words);
        if (!answer) return;
        FakePeer::write(socket, *answer);
      }
    }
  }
  std::optional<std::string> answer_to(const Words& words) {
    {
      const std::lock_guard lock(mutex_);
      ++asked_[words.front()];
    }
    if (words.front() == "PING") return "+PONG\r\n";
    auto answer = answer_(words);
    return !answer && words.front() == "CLUSTER" ? map() : answer;
  }

  const Answer answer_;
  mutable std::mutex mutex_;
  std::map<std::string, int> asked_;
  FakePeer peer_;
};

// What a counter has in the metrics, 0 for one that isn't there: name{labels}.
inline double metric(const std::string& series) {
  const std::string text = telemetry::scrape();
  const auto at = text.find("\n" + series + " ");
  return at == std::string::npos ? 0 : std::stod(text.substr(at + series.size() + 2));
}
inline double redirects(const std::string& client, const std::string& kind) {
  return metric("weir_redis_cluster_redirects_total{client=\"" + client + "\",kind=\"" + kind + "\"}");
}

// The first "keyN" with a slot that is wanted.
inline std::string key_with(const std::function<bool(Slot)>& wanted) {
  for (int i = 0;; ++i) {
    std::string key = "key" + std::to_string(i);
    if (wanted(slot_of(key))) return key;
  }
}

}  // namespace weir::redis

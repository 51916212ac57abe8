#include "weir/cache/redis_drop_feed.h"

#include <charconv>
#include <utility>

#include "weir/base/random.h"
#include "weir/telemetry/metrics.h"

namespace weir::cache {
namespace {

telemetry::Counter messages(const std::string& client, const char* outcome) {
  return telemetry::counter("weir_cache_feed_messages_total", "News of what other nodes have written",
                            {{"client", client}, {"outcome", outcome}});
}

void append_netstring(std::string& out, std::string_view part) {
  out += std::to_string(part.size());
  out += ':';
  out += part;
  out += ',';
}

redis::Subscriber::Calls calls_of(const std::shared_ptr<DropListeners>& listeners, const std::string& node,
                                  const std::string& client) {
  auto take = [listeners, node, heard = messages(client, "heard"), own = messages(client, "own"),
               damaged = messages(client, "damaged")](std::string_view message) mutable {
    const auto parts = read_netstrings(message);
    // Whoever says what nobody understands may have said something that mattered.
    if (parts.size() < 2) {
      damaged.add();
      return listeners->missed();
    }
    if (parts[0] == node) return own.add();
    heard.add();
    listeners->heard(parts[1], {parts.begin() + 2, parts.end()});
  };
  return {.message = std::move(take), .joined = [listeners] { listeners->missed(); }};
}

// Of a cluster every node hears what is published at any.
redis::SubscriberOptions at_nodes_of(redis::Client& client, redis::SubscriberOptions options) {
  if (!options.nodes) options.nodes = [&client] { return client.nodes(); };
  return options;
}

}  // namespace

std::string write_netstrings(const std::vector<std::string>& parts) {
  std::string message;
  for (const std::string& part : parts) append_netstring(message, part);
  return message;
}

std::vector<std::string> read_netstrings(std::string_view message) {
  std::vector<std::string> parts;
  while (!message.empty()) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(message.data(), message.data() + message.size(), size);
    if (error != std::errc()) return {};
    message.remove_prefix(static_cast<std::size_t>(end - message.data()));
    if (message.empty() || message.front() != ':') return {};
    message.remove_prefix(1);
    if (message.size() <= size || message[size] != ',') return {};
    parts.emplace_back(message.substr(0, size));
    message.remove_prefix(size + 1);
  }
  return parts;
}

RedisDropFeed::RedisDropFeed(redis::Client& client, boost::asio::any_io_executor executor,
                             redis::SubscriberOptions subscriber)
    : client_(client),
      channel_(subscriber.channel),
      node_(std::to_string(secure_random64())),
      subscriber_(std::move(executor), at_nodes_of(client, subscriber),
                  calls_of(listeners_, node_, subscriber.name)) {}

boost::asio::awaitable<void> RedisDropFeed::tell(std::string cache, std::vector<std::string> keys) {
  const std::string head = write_netstrings({node_, cache});
  std::vector<redis::Command> commands;
  std::string message = head;
  const auto finish = [&] {
    // Twice does no harm: what was dropped is dropped again.
    commands.push_back(redis::Command("PUBLISH", channel_, message).idempotent());
    message = head;
  };
  for (const std::string& key : keys) {
    if (message.size() > head.size() && message.size() + key.size() > kMaxMessageBytes) finish();
    append_netstring(message, key);
  }
  if (message.size() > head.size() || keys.empty()) finish();
  for (const redis::Reply& reply : co_await client_.pipeline(std::move(commands)))
    reply.throw_if_error("PUBLISH");
}

std::unique_ptr<DropFeed::Listening> RedisDropFeed::listen(std::string cache, Listener listener) {
  return listeners_->add(std::move(cache), std::move(listener));
}

}  // namespace weir::cache

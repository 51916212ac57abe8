// Client: one connection to a Redis server that many coroutines share, or one to each primary of a Redis Cluster.
//
// Their commands are pipelined: what is waiting while a write is under way goes out together with the next
// one. Replies come in the order of the commands, each to its own coroutine, on that coroutine's executor.
//
// Promises:
//  - Every call ends by its deadline, the first one too: with a reply, or with an error that tells whether the
//    command may have been done (NotDone: it wasn't; UnknownOutcome and TimedOut: unknown).
//  - A broken connection is made again, with jittered backoff. What was sent and not answered then fails with
//    UnknownOutcome; the client never sends it again by itself unless the command was marked idempotent. What
//    wasn't sent yet waits for the next connection, as long as its deadline allows.
//  - A server that is silent (stopped, or behind a cable that was cut) is given up after
//    `Options::silence_limit`.
//  - The queue is bounded, in calls and in bytes; when it is full a call is refused with NotDone.
//  - A coroutine that is cancelled stops waiting at once; its reply, when it comes, is dropped, and nobody
//    else's is touched.
//  - Damaged replies break the connection; they are never believed.
//
// Thread-safe: call it from any coroutine on any executor. The connection itself lives on a strand of the
// executor that it was given, so that may have many threads. An idle connection keeps that executor's context
// busy until `stop`. RESP2; no TLS.
//
//     redis::Client client(io.get_executor(), {.address = redis::Address::parse(url)});
//     co_await client.execute(redis::Command("SET", "greeting", "hello", "PX", 60'000));
//     const auto reply = co_await client.execute(redis::Command::read("GET", "greeting"));
//
// On a cluster (Options::seeds) the same calls mean the same, and beyond that:
//  - A call goes to the node that has its key's slot. All keys of a command, of a script's run and of a transaction must
//    share a slot, as those with the same hash tag do: else std::invalid_argument, and nothing is sent. So it is for
//    commands about one node (FLUSHALL, SCAN ..). What has no key (PUBLISH, PING) is done by any node.
//  - A pipeline is split by node and sent to all of them side by side. Commands of the same slot keep their order, those
//    of others don't; and where no answer came, or none that can be had, that is the reply in its place
//    (Reply::failure): it is thrown only when that goes for all. While a slot moves, order isn't kept.
//  - MOVED is followed and remembered, ASK is followed once, both at most kMaxRedirects times in a row. TRYAGAIN and
//    CLUSTERDOWN are asked again, with backoff, within the deadline; so is a node that is away, for what certainly
//    wasn't done or may be repeated, unless `fail_fast` is set.
//  - The limits of the queue are each node's, and once more those of what waits for another try.
//  - Metrics of a node have client = "NAME/host:port"; of the whole, client = NAME:
//    weir_redis_cluster_redirects_total{client,kind} with moved|ask|try_again|cluster_down,
//    weir_redis_cluster_looks_total{client,outcome}, weir_redis_cluster_primaries{client}.
//
// Metrics, by `client` = Options::name: weir_redis_commands_total{client,command,outcome} with
// ok|error|timeout|not_done|unknown|cancelled; weir_redis_command_duration_seconds{client,command};
// weir_redis_connects_total{client,outcome} with ok|error; weir_redis_reconnects_total{client};
// weir_redis_connected, weir_redis_waiting, weir_redis_waiting_bytes{client}.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/redis/address.h"
#include "weir/redis/command.h"
#include "weir/redis/error.h"
#include "weir/redis/reply.h"
#include "weir/redis/script.h"

namespace weir::redis {

class Route;

struct Options {
  using Millis = std::chrono::milliseconds;

  Address address{};
  // Some nodes of a Redis Cluster, which tell of the others: then it is a cluster, and `address` isn't looked at. All
  // nodes have the user and the password of the first; their database is 0.
  std::vector<Address> seeds{};
  std::string name = "redis";    // the label `client` of the metrics
  Millis timeout{500};           // of a call, from its beginning to its reply
  Millis connect_timeout{2000};  // of one attempt: the name, TCP, AUTH, SELECT, PING
  // With a command overdue and not a byte from the server for this long, the connection is given up.
  Millis silence_limit{2000};
  Millis backoff_first{10};  // the longest wait before the first new attempt; doubles up to
  Millis backoff_max{2000};
  std::size_t max_waiting = 10'000;                       // calls, sent or not
  std::size_t max_waiting_bytes = std::size_t{64} << 20;  // of their commands; one call always fits
  std::size_t max_reply_bytes = std::size_t{512} << 20;   // a larger reply breaks the connection
  // After a failed attempt to connect, refuse calls at once instead of letting them wait for the next one:
  // what a cache wants, whose readers have somewhere else to go.
  bool fail_fast = false;
  // Of a cluster: looks at who has which slots start that far apart, and up to once more at random.
  Millis refresh_gap{100};
};

class Client {
 public:
  using Millis = std::chrono::milliseconds;

  // Starts to connect. The executor's context must outlive the client. Throws std::invalid_argument for a cluster's
  // seed with a database other than 0.
  Client(boost::asio::any_io_executor executor, Options options);
  ~Client();  // stops
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The reply, which isn't an error reply: those are thrown as Error. Throws NotDone, UnknownOutcome,
  // TimedOut, and boost::system::system_error(operation_aborted) when the waiter is cancelled (the command
  // may have been sent). `timeout`: other than Options::timeout; at least a millisecond.
  boost::asio::awaitable<Reply> execute(Command command, std::optional<Millis> timeout = {});

  // The replies in the commands' order, error replies among them as values. The commands go out side by side,
  // with nobody's between them, but others' may still be done between them by the server. Idempotent if all
  // of them are. Counted as one command, PIPELINE.
  boost::asio::awaitable<Reply::Array> pipeline(std::vector<Command> commands,
                                                std::optional<Millis> timeout = {});

  // The same as one MULTI .. EXEC: all are done with nothing between them. Throws Error(aborted) when the
  // server refused one, so that none was done. Idempotent if all of them are.
  boost::asio::awaitable<Reply::Array> transaction(std::vector<Command> commands,
                                                   std::optional<Millis> timeout = {});

  // Runs the script: EVALSHA, and EVAL when the server doesn't know it (after a start, a flush). The two
  // share one deadline. Throws as `execute`.
  boost::asio::awaitable<Reply> eval(const Script& script, std::vector<std::string> keys,
                                     std::vector<std::string> arguments, std::optional<Millis> timeout = {});

  // The same many times over, as one pipeline: the replies in the calls' order, error replies as values.
  using ScriptCall = redis::ScriptCall;
  boost::asio::awaitable<Reply::Array> eval_many(const Script& script, std::vector<ScriptCall> calls,
                                                 std::optional<Millis> timeout = {});

  // Ends every wait (NotDone or UnknownOutcome), closes the connection and refuses new calls. Any thread.
  void stop();

  // To a cluster: it is known who has each slot, and no node that was needed is away.
  bool connected() const;
  // Calls in the queue, those included that nobody waits for any more and whose replies are still to come.
  std::size_t waiting() const;

  // What may be in one transaction, or in one run of a script, are keys of one group: the same for all keys of one
  // server, the slot in a cluster.
  std::size_t group_of(std::string_view key) const;
  // Where to connect for what any node can do (to subscribe): the server, or a cluster's nodes, replicas among them.
  std::vector<Address> nodes() const;

 private:
  const std::shared_ptr<Route> route_;
};

}  // namespace weir::redis

#include "weir/redis/cluster.h"

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <stdexcept>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/redis/call.h"
#include "weir/redis/handshake.h"

namespace weir::redis {

namespace asio = boost::asio;

namespace {

using Millis = std::chrono::milliseconds;

// Before another try of what a cluster in motion can't do now: full jitter up to the first, doubling up to the last.
constexpr Millis kRetryFirst{4};
constexpr Millis kRetryLast{50};
constexpr Millis kLeastWait{1};
// With less time than this left another try would only hide what the last one has told.
constexpr Millis kLeastTry{5};

telemetry::Counter redirects(const std::string& client, const char* kind) {
  return telemetry::counter("weir_redis_cluster_redirects_total",
                            "Answers of a cluster that it must be asked elsewhere or later",
                            {{"client", client}, {"kind", kind}});
}

Options checked(Options options) {
  for (const auto& seed : options.seeds) {
    if (seed.database != 0) throw std::invalid_argument("a Redis Cluster has the database 0 alone");
  }
  for (auto& seed : options.seeds) {
    seed.user = options.seeds.front().user;
    seed.password = options.seeds.front().password;
  }
  return options;
}

std::optional<Slot> slot_of_keys(const std::vector<std::string>& keys, const std::string& what) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  return common_slot(views, what);
}

}  // namespace

// One of those that wait; a cancelled wait leaves, too.
class Cluster::Parking {
 public:
  Parking(std::shared_ptr<Cluster> where, std::size_t bytes) : where_(std::move(where)), bytes_(bytes) {
    ++where_->parked_;
    where_->parked_bytes_ += bytes_;
  }
  ~Parking() {
    --where_->parked_;
    where_->parked_bytes_ -= bytes_;
  }
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;

 private:
  const std::shared_ptr<Cluster> where_;
  const std::size_t bytes_;
};

// What is sent and answered as one: a command, a script's run, or MULTI .. EXEC.
struct Cluster::Piece {
  Piece(std::vector<Command> all, std::optional<Slot> where)
      : commands(std::move(all)),
        slot(where),
        idempotent(std::ranges::all_of(commands, [](const Command& one) { return one.is_idempotent(); })) {}
  Piece(std::shared_ptr<const Script> which, ScriptCall call)
      : script(std::move(which)),
        run(std::move(call)),
        slot(slot_of_keys(run.keys, script->name())),
        idempotent(script->idempotent()) {}

  std::string name() const {
    if (script) return teach ? "EVAL" : "EVALSHA";
    return commands.front().name();
  }
  std::size_t bytes() const {
    std::size_t all = 0;
    for (const auto& one : commands) all += one.bytes().size();
    for (const auto& one : run.keys) all += one.size();
    for (const auto& one : run.arguments) all += one.size();
    return all;
  }
  void end(Reply::Array all) {
    replies = std::move(all);
    failure = nullptr;
    done = true;
  }
  void end(std::exception_ptr why) {
    failure = std::move(why);
    done = true;
  }

  std::vector<Command> commands;
  std::shared_ptr<const Script> script;  // and `run`: instead of commands
  ScriptCall run;
  std::optional<Slot> slot;  // none: any node
  bool idempotent;

  NodePtr node;         // where ASK or NOSCRIPT wants it; null: who has the slot
  bool asking = false;  // ASK
  bool teach = false;   // the node doesn't know the script
  unsigned redirects = 0;
  unsigned sends = 0;
  SteadyTime not_before{};
  Backoff backoff{kRetryFirst, kRetryLast};
  std::unique_ptr<Parking> parking;

  bool done = false;
  Reply::Array replies;        // what has been answered last
  std::exception_ptr failure;  // or why nothing was
};

// What goes to one node in one call.
struct Cluster::Group {
  Group(NodePtr to, const Time& time) : node(std::move(to)), call(std::make_shared<Call>()) {
    call->replies = 0;
    call->several = true;
    call->idempotent = true;
    call->begun = time.begun;
    call->deadline = time.deadline;
  }
  void add(Piece& piece) {
    const std::size_t before = call->replies;
    if (piece.asking) append(asking());
    for (const auto& command : piece.commands) append(command);
    call->name = pieces.empty() ? piece.name() : "PIPELINE";
    if (piece.script) {
      // The first teaches it, the others follow on the same connection.
      const bool first = piece.teach && !std::exchange(teaches, true);
      append(first ? script_command("EVAL", piece.script->source(), *piece.script, piece.run)
                   : script_command("EVALSHA", piece.script->sha1(), *piece.script, piece.run));
    }
    call->sends = std::max(call->sends, piece.sends);
    pieces.push_back(&piece);
    sizes.push_back(call->replies - before);
  }

  NodePtr node;
  CallPtr call;
  std::vector<Piece*> pieces;
  std::vector<std::size_t> sizes;  // how many commands each piece has in it

 private:
  static const Command& asking() {
    static const Command command = Handshake::command("ASKING", {}).idempotent();
    return command;
  }
  void append(const Command& command) {
    call->bytes += command.bytes();
    ++call->replies;
    call->idempotent = call->idempotent && command.is_idempotent();
  }
  bool teaches = false;
};

Cluster::Cluster(const asio::any_io_executor& executor, Options options)
    : options_(checked(std::move(options))),
      map_(std::make_shared<ClusterMap>(executor, options_)),
      moved_(redirects(options_.name, "moved")),
      ask_(redirects(options_.name, "ask")),
      try_again_(redirects(options_.name, "try_again")),
      cluster_down_(redirects(options_.name, "cluster_down")) {}

// Sends what can be sent, to all nodes side by side, until each piece has its end.
asio::awaitable<void> Cluster::settle(Pieces& pieces, Time time) {
  std::optional<asio::steady_timer> timer;
  for (;;) {
    auto groups = gather(pieces, time);
    if (groups.size() == 1) {
      Outcome outcome;
      try {
        outcome.reply = co_await groups[0].node->core()->run(groups[0].call);
      } catch (...) {
        outcome.error = std::current_exception();
      }
      sort_out(groups[0], std::move(outcome), time);
      continue;
    }
    if (!groups.empty()) {
      std::vector<Errand> errands;
      for (const auto& group : groups) errands.push_back({group.node->core(), group.call});
      auto outcomes = co_await run_together(std::move(errands));
      for (std::size_t i = 0; i < groups.size(); ++i) sort_out(groups[i], std::move(outcomes[i]), time);
      continue;
    }
    SteadyTime next = SteadyTime::max();
    for (const auto& piece : pieces)
      if (!piece.done) next = std::min(next, piece.not_before);
    if (next == SteadyTime::max()) co_return;
    if (!timer) timer.emplace(co_await asio::this_coro::executor);
    timer->expires_at(next);
    co_await timer->async_wait(asio::use_awaitable);
  }
}

auto Cluster::gather(Pieces& pieces, const Time& time) -> std::vector<Group> {
  std::vector<Group> groups;
  const auto now = Clock::system().steady_now();
  for (auto& piece : pieces) {
    if (piece.done || piece.not_before > now) continue;
    piece.parking.reset();
    const NodePtr node = node_for(piece);
    if (!node) {
      piece.failure = nobody_for(piece);
      map_->refresh_soon();
      may_wait(piece) ? later(piece, time) : piece.end(piece.failure);
      continue;
    }
    auto at = std::ranges::find_if(groups, [&](const Group& one) { return one.node == node; });
    if (at == groups.end()) at = groups.emplace(at, node, time);
    at->add(piece);
  }
  return groups;
}

NodePtr Cluster::node_for(const Piece& piece) {
  if (piece.node) return piece.node;
  return piece.slot ? map_->node_of(*piece.slot) : map_->any_node();
}

std::exception_ptr Cluster::nobody_for(const Piece& piece) const {
  std::string text = "no node of the Redis Cluster is known to have ";
  text += piece.slot ? "the slot " + std::to_string(*piece.slot) : "a connection";
  text += ": " + map_->last_failure();
  if (piece.sends > 0) return std::make_exception_ptr(UnknownOutcome("unknown whether done: " + text));
  return std::make_exception_ptr(NotDone("not done: " + text));
}

// Whether one who has found nobody may look again.
bool Cluster::may_wait(const Piece& piece) const {
  if (map_->stopped()) return false;
  return !options_.fail_fast || (piece.slot && !map_->unreachable());
}

void Cluster::sort_out(Group& group, Outcome outcome, const Time& time) {
  for (Piece* piece : group.pieces) piece->sends = std::max(piece->sends, group.call->sends);
  if (outcome.error) {
    for (Piece* piece : group.pieces) failed(*piece, group.node, outcome.error, time);
    return;
  }
  Reply::Array all = std::move(outcome.reply).array();
  auto at = all.begin();
  for (std::size_t i = 0; i < group.pieces.size(); ++i) {
    Piece& piece = *group.pieces[i];
    const auto end = at + static_cast<std::ptrdiff_t>(group.sizes[i]);
    if (piece.asking) ++at;  // the OK to ASKING
    answered(piece, group.node, Reply::Array(std::move_iterator(at), std::move_iterator(end)), time);
    at = end;
  }
}

void Cluster::answered(Piece& piece, const NodePtr& by, Reply::Array replies, const Time& time) {
  // A transaction of which one command was refused isn't done, and neither is what says so of itself.
  const auto telling = std::ranges::find_if(replies, [](const Reply& one) {
    const auto kind = error_kind(one.error_text());
    return kind == ErrorKind::moved || kind == ErrorKind::busy || kind == ErrorKind::no_script;
  });
  if (telling == replies.end()) return piece.end(std::move(replies));
  const std::string text(telling->error_text());
  piece.replies = std::move(replies);
  piece.failure = nullptr;
  if (text.starts_with("TRYAGAIN")) {
    try_again_.add();
    return later(piece, time);
  }
  if (text.starts_with("CLUSTERDOWN")) {
    cluster_down_.add();
    map_->refresh_soon();
    return later(piece, time);
  }
  const auto redirect = Redirect::read(text, by->address());
  const bool taught = piece.script && error_kind(text) == ErrorKind::no_script;
  if ((!redirect && !taught) || ++piece.redirects > kMaxRedirects) return piece.end(std::move(piece.replies));
  if (redirect) return redirected(piece, *redirect);
  piece.teach = true;
  piece.node = by;
}

void Cluster::redirected(Piece& piece, const Redirect& redirect) {
  (redirect.ask ? ask_ : moved_).add();
  piece.asking = redirect.ask;
  piece.teach = false;
  if (redirect.ask) {
    piece.node = map_->node_at(redirect.to);
    if (!piece.node) piece.asking = false;
    return;
  }
  piece.node = nullptr;
  map_->learn(redirect.slot, redirect.to);
  map_->refresh_soon();
}

void Cluster::failed(Piece& piece, const NodePtr& by, std::exception_ptr error, const Time& time) {
  // What has no key can be done by another node, so it needn't be waited for this one.
  const bool patient = !options_.fail_fast || !piece.slot;
  piece.failure = error;
  try {
    std::rethrow_exception(error);
  } catch (const NotDone& why) {
    map_->refresh_soon();
    if (piece.sends > 0)
      piece.failure =
          std::make_exception_ptr(UnknownOutcome("unknown whether done: " + std::string(why.what())));
    if (patient && by->core()->down() && !map_->stopped()) return later(piece, time);
  } catch (const UnknownOutcome&) {
    map_->refresh_soon();
    if (patient && piece.idempotent && piece.sends < kMaxSends && !map_->stopped()) return later(piece, time);
  } catch (const boost::system::system_error& ended) {
    if (ended.code() == asio::error::operation_aborted) throw;  // the waiter's own end
  } catch (const std::exception&) {
    map_->refresh_soon();  // a node that doesn't answer may have been replaced
  }
  piece.end(piece.failure);
}

// Once more after a while, as long as the deadline allows; else what it has now is its end.
void Cluster::later(Piece& piece, const Time& time) {
  const auto now = Clock::system().steady_now();
  const auto left = time.deadline - now;
  const std::size_t bytes = piece.bytes();
  const bool crowded =
      parked_ >= options_.max_waiting || (parked_ > 0 && parked_bytes_ + bytes > options_.max_waiting_bytes);
  if (left < kLeastWait + kLeastTry || crowded || map_->stopped()) {
    piece.failure ? piece.end(piece.failure) : piece.end(std::move(piece.replies));
    return;
  }
  const auto wait = std::max(piece.backoff.next(), kLeastWait);
  piece.not_before = std::min<SteadyTime>(now + wait, time.deadline - kLeastTry);
  piece.node = nullptr;
  piece.asking = piece.teach = false;
  piece.redirects = 0;
  piece.parking = std::make_unique<Parking>(shared_from_this(), bytes);
}

auto Cluster::time_for(Patience timeout) const -> Time {
  const auto now = Clock::system().steady_now();
  return {now, deadline_of(now, timeout, options_)};
}

// Each piece's only reply; what was answered by nobody is a failure, thrown when all are.
Reply::Array Cluster::replies_of(Pieces pieces) {
  Reply::Array all;
  all.reserve(pieces.size());
  for (auto& piece : pieces)
    all.push_back(piece.failure ? Reply::failure(piece.failure) : std::move(piece.replies.back()));
  if (std::ranges::all_of(pieces, [](const Piece& piece) { return piece.failure != nullptr; }))
    std::rethrow_exception(pieces.front().failure);
  return all;
}

asio::awaitable<Reply> Cluster::execute(Command command, Patience timeout) {
  const auto self = shared_from_this();
  const std::string name = command.name();
  const auto slot = slot_of_command(command);
  Pieces pieces;
  pieces.emplace_back(std::vector<Command>{std::move(command)}, slot);
  co_await settle(pieces, time_for(timeout));
  Reply reply = std::move(replies_of(std::move(pieces)).front());
  reply.throw_if_error(name);
  co_return reply;
}

asio::awaitable<Reply::Array> Cluster::pipeline(std::vector<Command> commands, Patience timeout) {
  const auto self = shared_from_this();
  if (commands.empty()) co_return Reply::Array{};
  Pieces pieces;
  pieces.reserve(commands.size());
  for (auto& command : commands) {
    const auto slot = slot_of_command(command);
    pieces.emplace_back(std::vector<Command>{std::move(command)}, slot);
  }
  co_await settle(pieces, time_for(timeout));
  co_return replies_of(std::move(pieces));
}

asio::awaitable<Reply::Array> Cluster::transaction(std::vector<Command> commands, Patience timeout) {
  const auto self = shared_from_this();
  if (commands.empty()) co_return Reply::Array{};
  std::optional<Slot> slot;
  for (const auto& command : commands) {
    const auto own = slot_of_command(command);
    if (slot && own && *slot != *own)
      throw std::invalid_argument("MULTI: " + command.name() + " is about another slot than those before it");
    if (own) slot = own;
  }
  commands = as_transaction(std::move(commands));
  Pieces pieces;
  pieces.emplace_back(commands, slot);
  co_await settle(pieces, time_for(timeout));
  if (pieces.front().failure) std::rethrow_exception(pieces.front().failure);
  co_return unpack_transaction(commands, std::move(pieces.front().replies));
}

asio::awaitable<Reply> Cluster::eval(Script script, ScriptCall call, Patience timeout) {
  const std::string name = script.name();
  std::vector<ScriptCall> one;
  one.push_back(std::move(call));
  Reply reply = std::move((co_await eval_many(std::move(script), std::move(one), timeout)).front());
  reply.throw_if_error(name);
  co_return reply;
}

asio::awaitable<Reply::Array> Cluster::eval_many(Script script, std::vector<ScriptCall> calls,
                                                 Patience timeout) {
  const auto self = shared_from_this();
  if (calls.empty()) co_return Reply::Array{};
  const auto shared = std::make_shared<const Script>(std::move(script));
  Pieces pieces;
  pieces.reserve(calls.size());
  for (auto& call : calls) pieces.emplace_back(shared, std::move(call));
  co_await settle(pieces, time_for(timeout));
  co_return replies_of(std::move(pieces));
}

}  // namespace weir::redis

#include "weir/redis/cluster.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
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
constexpr Millis kLeastTry{10};

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

  bool goes = false;  // now
  bool done = false;
  Reply::Array replies;        // what has been answered last
  std::exception_ptr failure;  // or why nothing was
};

// What goes to one node in one call.
struct Cluster::Group {
  CallPtr assemble(const Time& time) {
    auto call = std::make_shared<Call>();
    call->name = pieces.size() == 1 ? pieces.front()->name() : "PIPELINE";
    call->replies = 0;
    call->several = true;
    call->idempotent = true;
    call->begun = time.begun;
    call->deadline = time.deadline;
    bool teaches = false;
    for (const Piece* piece : pieces) add(*piece, *call, teaches);
    return call;
  }

  NodePtr node;
  std::vector<Piece*> pieces;
  std::vector<std::size_t> sizes;  // how many commands each piece has in the call

 private:
  void add(const Piece& piece, Call& call, bool& teaches) {
    static const Command asking = Handshake::command("ASKING", {}).idempotent();
    const std::size_t before = call.replies;
    if (piece.asking) append(asking, call);
    for (const auto& command : piece.commands) append(command, call);
    if (piece.script) {
      // The first teaches it, the others follow on the same connection.
      const bool first = piece.teach && !std::exchange(teaches, true);
      append(first ? script_command("EVAL", piece.script->source(), *piece.script, piece.run)
                   : script_command("EVALSHA", piece.script->sha1(), *piece.script, piece.run),
             call);
    }
    call.sends = std::max(call.sends, piece.sends);
    sizes.push_back(call.replies - before);
  }
  static void append(const Command& command, Call& call) {
    call.bytes += command.bytes();
    ++call.replies;
    call.idempotent = call.idempotent && command.is_idempotent();
  }
};

Cluster::Cluster(const asio::any_io_executor& executor, Options options)
    : options_(checked(std::move(options))),
      map_(std::make_shared<ClusterMap>(executor, options_)),
      moved_(redirects(options_.name, "moved")),
      ask_(redirects(options_.name, "ask")),
      try_again_(redirects(options_.name, "try_again")),
      cluster_down_(redirects(options_.name, "cluster_down")) {}

// Until each piece has its end. What goes different ways goes them side by side: a node that is slow holds up nobody
// else's next step.
asio::awaitable<void> Cluster::settle(Way pieces, Time time) {
  std::optional<asio::steady_timer> timer;
  for (;;) {
    const auto is_done = [](const Piece* piece) { return piece->done; };
    std::erase_if(pieces, is_done);
    auto groups = gather(pieces, time);
    std::erase_if(pieces, is_done);
    if (pieces.empty()) co_return;
    if (groups.empty()) {
      const auto next = std::ranges::min(pieces, {}, &Piece::not_before)->not_before;
      if (!timer) timer.emplace(co_await asio::this_coro::executor);
      timer->expires_at(next);
      co_await timer->async_wait(asio::use_awaitable);
    } else if (groups[0].pieces.size() < pieces.size()) {
      co_return co_await settle_apart(std::move(groups), std::move(pieces), time);
    } else {
      const auto call = groups[0].assemble(time);
      Outcome outcome;
      try {
        outcome.reply = co_await groups[0].node->core()->run(call);
      } catch (...) {
        outcome.error = std::current_exception();
      }
      for (Piece* piece : pieces) piece->sends = std::max(piece->sends, call->sends);
      sort_out(groups[0], std::move(outcome), time);
    }
  }
}

asio::awaitable<void> Cluster::settle_apart(std::vector<Group> groups, Way pieces, Time time) {
  const auto executor = co_await asio::this_coro::executor;
  const auto start = [&](Way way) {
    return asio::co_spawn(executor, settle(std::move(way), time), asio::deferred);
  };
  std::vector<decltype(start({}))> ways;
  for (auto& group : groups) ways.push_back(start(std::move(group.pieces)));
  std::erase_if(pieces, [](const Piece* piece) { return piece->goes; });
  if (!pieces.empty()) ways.push_back(start(std::move(pieces)));  // those that wait
  const auto [order, errors] = co_await asio::experimental::make_parallel_group(std::move(ways))
                                   .async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);  // cancelled
}

// What can go now, by node.
auto Cluster::gather(const Way& pieces, const Time& time) -> std::vector<Group> {
  std::vector<Group> groups;
  const auto now = Clock::system().steady_now();
  NodePtr any;  // the same for all that have no key
  for (Piece* piece : pieces) {
    piece->goes = piece->not_before <= now;
    if (!piece->goes) continue;
    piece->parking.reset();
    if (!piece->slot && !any) any = map_->any_node();
    const NodePtr node = piece->slot ? node_for(*piece) : any;
    if (!node) {
      piece->goes = false;
      piece->failure = nobody_for(*piece);
      map_->refresh_soon();
      may_wait(*piece) ? later(*piece, time) : piece->end(piece->failure);
      continue;
    }
    auto at = std::ranges::find(groups, node, &Group::node);
    if (at == groups.end()) at = groups.insert(at, Group());
    at->node = node;
    at->pieces.push_back(piece);
  }
  return groups;
}

NodePtr Cluster::node_for(const Piece& piece) {
  return piece.node ? piece.node : map_->node_of(*piece.slot);
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
  const auto next = Clock::system().steady_now() + std::max(piece.backoff.next(), kLeastWait);
  const std::size_t bytes = piece.bytes();
  const bool crowded =
      parked_ >= options_.max_waiting || (parked_ > 0 && parked_bytes_ + bytes > options_.max_waiting_bytes);
  if (next + kLeastTry > time.deadline || crowded || map_->stopped()) {
    piece.failure ? piece.end(piece.failure) : piece.end(std::move(piece.replies));
    return;
  }
  piece.not_before = next;
  piece.node = nullptr;
  piece.asking = piece.teach = false;
  piece.redirects = 0;
  piece.parking = std::make_unique<Parking>(shared_from_this(), bytes);
}

auto Cluster::all_of(Pieces& pieces) -> Way {
  Way all;
  all.reserve(pieces.size());
  for (auto& piece : pieces) all.push_back(&piece);
  return all;
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
  co_await settle(all_of(pieces), time_for(timeout));
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
  co_await settle(all_of(pieces), time_for(timeout));
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
  co_await settle(all_of(pieces), time_for(timeout));
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
  co_await settle(all_of(pieces), time_for(timeout));
  co_return replies_of(std::move(pieces));
}

}  // namespace weir::redis

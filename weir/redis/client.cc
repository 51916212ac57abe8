#include "weir/redis/client.h"

#include <algorithm>
#include <utility>

#include "weir/redis/core.h"

namespace weir::redis {
namespace {

namespace asio = boost::asio;
using Millis = std::chrono::milliseconds;

// Longer deadlines are taken for this: so that a sum with the time doesn't overflow.
constexpr Millis kMaxTimeout = std::chrono::hours(24);

CallPtr make_call(Command command, SteadyTime begun, SteadyTime deadline) {
  auto call = std::make_shared<Call>();
  call->name = command.name();
  call->idempotent = command.is_idempotent();
  call->bytes = std::move(command).bytes();
  call->begun = begun;
  call->deadline = deadline;
  return call;
}

CallPtr make_call(std::string name, const std::vector<Command>& commands, SteadyTime begun,
                  SteadyTime deadline) {
  auto call = std::make_shared<Call>();
  call->name = std::move(name);
  call->idempotent = true;
  call->replies = commands.size();
  call->several = true;
  call->begun = begun;
  call->deadline = deadline;
  std::size_t size = 0;
  for (const auto& command : commands) size += command.bytes().size();
  call->bytes.reserve(size);
  for (const auto& command : commands) {
    call->bytes += command.bytes();
    call->idempotent = call->idempotent && command.is_idempotent();
  }
  return call;
}

Command script_command(std::string_view name, const std::string& script, const Script& about,
                       const std::vector<std::string>& keys, const std::vector<std::string>& arguments) {
  std::vector<Command::Argument> all{script, keys.size()};
  all.insert(all.end(), keys.begin(), keys.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  Command command(name, std::span<const Command::Argument>(all));
  if (about.idempotent()) command.idempotent();
  return command;
}

Millis usable(std::optional<Millis> asked, const Options& options) {
  return std::clamp(asked.value_or(options.timeout), Millis(1), kMaxTimeout);
}

}  // namespace

Client::Client(asio::any_io_executor executor, Options options)
    : core_(std::make_shared<Core>(std::move(executor), std::move(options))) {
  core_->start();
}
Client::~Client() {
  core_->stop();
}
void Client::stop() {
  core_->stop();
}
bool Client::connected() const {
  return core_->connected();
}
std::size_t Client::waiting() const {
  return core_->waiting();
}

asio::awaitable<Reply> Client::execute(Command command, std::optional<Millis> timeout) {
  const auto core = core_;  // the client may go while we wait
  const auto now = Clock::system().steady_now();
  const std::string name = command.name();
  Reply reply =
      co_await core->run(make_call(std::move(command), now, now + usable(timeout, core->options())));
  reply.throw_if_error(name);
  co_return reply;
}

asio::awaitable<Reply::Array> Client::pipeline(std::vector<Command> commands, std::optional<Millis> timeout) {
  const auto core = core_;
  if (commands.empty()) co_return Reply::Array{};
  const auto now = Clock::system().steady_now();
  Reply all =
      co_await core->run(make_call("PIPELINE", commands, now, now + usable(timeout, core->options())));
  co_return std::move(all).array();
}

asio::awaitable<Reply::Array> Client::transaction(std::vector<Command> commands,
                                                  std::optional<Millis> timeout) {
  const auto core = core_;
  if (commands.empty()) co_return Reply::Array{};
  // All or nothing is done, so what may be done twice as single commands may be as a whole.
  commands.insert(commands.begin(), Command(Command::Unchecked{}, "MULTI", {}).idempotent());
  commands.push_back(Command(Command::Unchecked{}, "EXEC", {}).idempotent());
  const auto now = Clock::system().steady_now();
  Reply all = co_await core->run(make_call("MULTI", commands, now, now + usable(timeout, core->options())));
  Reply::Array replies = std::move(all).array();
  Reply done = std::move(replies.back());
  replies.pop_back();
  if (done.is_error()) {
    // The reason is with the command that was refused, not with EXEC.
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].is_error())
        throw Error(ErrorKind::aborted, "MULTI: " + commands[i].name() + ": " + replies[i].describe());
    }
    done.throw_if_error("MULTI");
  }
  co_return std::move(done).array();
}

asio::awaitable<Reply> Client::eval(const Script& script, std::vector<std::string> keys,
                                    std::vector<std::string> arguments, std::optional<Millis> timeout) {
  const auto core = core_;
  // The caller's may go while we wait.
  const Script known = script;  // NOLINT(performance-unnecessary-copy-initialization)
  const auto now = Clock::system().steady_now();
  const auto deadline = now + usable(timeout, core->options());
  Reply reply = co_await core->run(
      make_call(script_command("EVALSHA", known.sha1(), known, keys, arguments), now, deadline));
  if (reply.is_error() && error_kind(reply.error_text()) == ErrorKind::no_script) {
    // Nothing was done, so this isn't a second time. EVAL teaches the server the script, too.
    auto command = script_command("EVAL", known.source(), known, keys, arguments);
    reply = co_await core->run(make_call(std::move(command), Clock::system().steady_now(), deadline));
  }
  reply.throw_if_error(known.name());
  co_return reply;
}

asio::awaitable<Reply::Array> Client::eval_many(const Script& script, std::vector<ScriptCall> calls,
                                                std::optional<Millis> timeout) {
  const auto core = core_;
  const Script known = script;  // NOLINT(performance-unnecessary-copy-initialization): as above
  const auto now = Clock::system().steady_now();
  const auto deadline = now + usable(timeout, core->options());
  const auto command = [&](std::string_view name, const std::string& text, const ScriptCall& call) {
    return script_command(name, text, known, call.keys, call.arguments);
  };
  if (calls.empty()) co_return Reply::Array{};
  std::vector<Command> commands;
  for (const auto& call : calls) commands.push_back(command("EVALSHA", known.sha1(), call));
  Reply first = co_await core->run(make_call("PIPELINE", commands, now, deadline));
  Reply::Array replies = std::move(first).array();

  std::vector<std::size_t> again;  // not done, since the server didn't know the script
  commands.clear();
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (error_kind(replies[i].error_text()) != ErrorKind::no_script) continue;
    // The first teaches it, the others follow on the same connection.
    commands.push_back(again.empty() ? command("EVAL", known.source(), calls[i])
                                     : command("EVALSHA", known.sha1(), calls[i]));
    again.push_back(i);
  }
  if (again.empty()) co_return replies;
  Reply second = co_await core->run(make_call("PIPELINE", commands, Clock::system().steady_now(), deadline));
  Reply::Array others = std::move(second).array();
  for (std::size_t i = 0; i < again.size(); ++i) replies[again[i]] = std::move(others[i]);
  co_return replies;
}

}  // namespace weir::redis

#include "weir/redis/single.h"

#include <utility>

#include "weir/redis/call.h"

namespace weir::redis {

namespace asio = boost::asio;

// In each of these: the client may go while we wait, and its core stays.

Single::Single(const asio::any_io_executor& executor, Options options)
    : core_(std::make_shared<Core>(executor, std::move(options))) {
  core_->start();
}

asio::awaitable<Reply> Single::execute(Command command, Patience timeout) {
  const auto core = core_;
  const std::string name = command.name();
  const auto now = Clock::system().steady_now();
  const auto deadline = deadline_of(now, timeout, core->options());
  Reply reply = co_await core->run(make_call(std::move(command), now, deadline));
  reply.throw_if_error(name);
  co_return reply;
}

asio::awaitable<Reply::Array> Single::pipeline(std::vector<Command> commands, Patience timeout) {
  const auto core = core_;
  if (commands.empty()) co_return Reply::Array{};
  const auto now = Clock::system().steady_now();
  const auto deadline = deadline_of(now, timeout, core->options());
  Reply all = co_await core->run(make_call("PIPELINE", commands, now, deadline));
  co_return std::move(all).array();
}

asio::awaitable<Reply::Array> Single::transaction(std::vector<Command> commands, Patience timeout) {
  const auto core = core_;
  if (commands.empty()) co_return Reply::Array{};
  commands = as_transaction(std::move(commands));
  const auto now = Clock::system().steady_now();
  const auto deadline = deadline_of(now, timeout, core->options());
  Reply all = co_await core->run(make_call("MULTI", commands, now, deadline));
  co_return unpack_transaction(commands, std::move(all).array());
}

asio::awaitable<Reply> Single::eval(Script script, ScriptCall call, Patience timeout) {
  const auto core = core_;
  const auto now = Clock::system().steady_now();
  const auto deadline = deadline_of(now, timeout, core->options());
  Reply reply =
      co_await core->run(make_call(script_command("EVALSHA", script.sha1(), script, call), now, deadline));
  if (reply.is_error() && error_kind(reply.error_text()) == ErrorKind::no_script) {
    // Nothing was done, so this isn't a second time. EVAL teaches the server the script, too.
    auto command = script_command("EVAL", script.source(), script, call);
    reply = co_await core->run(make_call(std::move(command), Clock::system().steady_now(), deadline));
  }
  reply.throw_if_error(script.name());
  co_return reply;
}

asio::awaitable<Reply::Array> Single::eval_many(Script script, std::vector<ScriptCall> calls,
                                                Patience timeout) {
  const auto core = core_;
  const auto now = Clock::system().steady_now();
  const auto deadline = deadline_of(now, timeout, core->options());
  if (calls.empty()) co_return Reply::Array{};
  std::vector<Command> commands;
  for (const auto& call : calls) commands.push_back(script_command("EVALSHA", script.sha1(), script, call));
  Reply first = co_await core->run(make_call("PIPELINE", commands, now, deadline));
  Reply::Array replies = std::move(first).array();

  std::vector<std::size_t> again;  // not done, since the server didn't know the script
  commands.clear();
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (error_kind(replies[i].error_text()) != ErrorKind::no_script) continue;
    // The first teaches it, the others follow on the same connection.
    commands.push_back(again.empty() ? script_command("EVAL", script.source(), script, calls[i])
                                     : script_command("EVALSHA", script.sha1(), script, calls[i]));
    again.push_back(i);
  }
  if (again.empty()) co_return replies;
  Reply second = co_await core->run(make_call("PIPELINE", commands, Clock::system().steady_now(), deadline));
  Reply::Array others = std::move(second).array();
  for (std::size_t i = 0; i < again.size(); ++i) replies[again[i]] = std::move(others[i]);
  co_return replies;
}

}  // namespace weir::redis

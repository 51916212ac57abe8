#include "weir/redis/call.h"

#include <algorithm>
#include <span>
#include <utility>

#include "weir/redis/handshake.h"

namespace weir::redis {
namespace {

using Millis = std::chrono::milliseconds;

// Longer deadlines are taken for this: so that a sum with the time doesn't overflow.
constexpr Millis kMaxTimeout = std::chrono::hours(24);

}  // namespace

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

Command script_command(std::string_view name, const std::string& text, const Script& about,
                       const ScriptCall& call) {
  std::vector<Command::Argument> all{text, call.keys.size()};
  all.insert(all.end(), call.keys.begin(), call.keys.end());
  all.insert(all.end(), call.arguments.begin(), call.arguments.end());
  Command command(name, std::span<const Command::Argument>(all));
  if (about.idempotent()) command.idempotent();
  return command;
}

std::vector<Command> as_transaction(std::vector<Command> commands) {
  commands.insert(commands.begin(), Handshake::command("MULTI", {}).idempotent());
  commands.push_back(Handshake::command("EXEC", {}).idempotent());
  return commands;
}

Reply::Array unpack_transaction(const std::vector<Command>& commands, Reply::Array replies) {
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
  return std::move(done).array();
}

SteadyTime deadline_of(SteadyTime begun, std::optional<Millis> asked, const Options& options) {
  return begun + std::clamp(asked.value_or(options.timeout), Millis(1), kMaxTimeout);
}

}  // namespace weir::redis

// Calls as they are made of commands, for one server and for a cluster alike. A detail of the folder.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/redis/core.h"

namespace weir::redis {

CallPtr make_call(Command command, SteadyTime begun, SteadyTime deadline);
// Idempotent if all of them are; the reply is an array of theirs.
CallPtr make_call(std::string name, const std::vector<Command>& commands, SteadyTime begun,
                  SteadyTime deadline);

// `name`: EVALSHA or EVAL, and `text` the digest or the source.
Command script_command(std::string_view name, const std::string& text, const Script& about,
                       const ScriptCall& call);

// MULTI, the commands, EXEC. All or nothing is done, so what may be done twice as single commands may be as a whole.
std::vector<Command> as_transaction(std::vector<Command> commands);
// What EXEC has answered, from the replies to all of these; throws Error(aborted).
Reply::Array unpack_transaction(const std::vector<Command>& commands, Reply::Array replies);

// At least a millisecond later, at most a day.
SteadyTime deadline_of(SteadyTime begun, std::optional<std::chrono::milliseconds> asked,
                       const Options& options);

}  // namespace weir::redis

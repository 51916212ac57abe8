// Route: what stands behind a Client: one server (Single) or a cluster (Cluster). What each call promises is said in
// client.h. A detail of the folder.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/redis/address.h"
#include "weir/redis/command.h"
#include "weir/redis/reply.h"
#include "weir/redis/script.h"

namespace weir::redis {

class Route {
 public:
  using Patience = std::optional<std::chrono::milliseconds>;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  virtual ~Route() = default;

  virtual Awaitable<Reply> execute(Command command, Patience timeout) = 0;
  virtual Awaitable<Reply::Array> pipeline(std::vector<Command> commands, Patience timeout) = 0;
  virtual Awaitable<Reply::Array> transaction(std::vector<Command> commands, Patience timeout) = 0;
  // `script` may go while it waits.
  virtual Awaitable<Reply> eval(Script script, ScriptCall call, Patience timeout) = 0;
  virtual Awaitable<Reply::Array> eval_many(Script script, std::vector<ScriptCall> calls,
                                            Patience timeout) = 0;

  virtual void stop() = 0;
  virtual bool connected() const = 0;
  virtual std::size_t waiting() const = 0;
  virtual std::size_t group_of(std::string_view key) const = 0;
  virtual std::vector<Address> nodes() const = 0;
};

}  // namespace weir::redis

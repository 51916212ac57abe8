// Single: a Client's route to one server.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "weir/redis/core.h"
#include "weir/redis/route.h"

namespace weir::redis {

class Single final : public Route {
 public:
  // Starts to connect.
  Single(const boost::asio::any_io_executor& executor, Options options);

  Awaitable<Reply> execute(Command command, Patience timeout) override;
  Awaitable<Reply::Array> pipeline(std::vector<Command> commands, Patience timeout) override;
  Awaitable<Reply::Array> transaction(std::vector<Command> commands, Patience timeout) override;
  Awaitable<Reply> eval(Script script, ScriptCall call, Patience timeout) override;
  Awaitable<Reply::Array> eval_many(Script script, std::vector<ScriptCall> calls, Patience timeout) override;

  void stop() override { core_->stop(); }
  bool connected() const override { return core_->connected(); }
  std::size_t waiting() const override { return core_->waiting(); }
  std::size_t group_of(std::string_view) const override { return 0; }
  std::vector<Address> nodes() const override { return {core_->options().address}; }

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace weir::redis

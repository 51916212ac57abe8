#include "weir/redis/client.h"

#include <utility>

#include "weir/redis/cluster.h"
#include "weir/redis/single.h"

namespace weir::redis {

namespace asio = boost::asio;

namespace {

std::shared_ptr<Route> route_of(const asio::any_io_executor& executor, Options options) {
  if (options.seeds.empty()) return std::make_shared<Single>(executor, std::move(options));
  auto cluster = std::make_shared<Cluster>(executor, std::move(options));
  cluster->start();
  return cluster;
}

}  // namespace

Client::Client(asio::any_io_executor executor, Options options)
    : route_(route_of(executor, std::move(options))) {}
Client::~Client() {
  route_->stop();
}
void Client::stop() {
  route_->stop();
}
bool Client::connected() const {
  return route_->connected();
}
std::size_t Client::waiting() const {
  return route_->waiting();
}
std::size_t Client::group_of(std::string_view key) const {
  return route_->group_of(key);
}
std::vector<Address> Client::nodes() const {
  return route_->nodes();
}

asio::awaitable<Reply> Client::execute(Command command, std::optional<Millis> timeout) {
  return route_->execute(std::move(command), timeout);
}
asio::awaitable<Reply::Array> Client::pipeline(std::vector<Command> commands, std::optional<Millis> timeout) {
  return route_->pipeline(std::move(commands), timeout);
}
asio::awaitable<Reply::Array> Client::transaction(std::vector<Command> commands,
                                                  std::optional<Millis> timeout) {
  return route_->transaction(std::move(commands), timeout);
}
asio::awaitable<Reply> Client::eval(const Script& script, std::vector<std::string> keys,
                                    std::vector<std::string> arguments, std::optional<Millis> timeout) {
  return route_->eval(script, {std::move(keys), std::move(arguments)}, timeout);
}
asio::awaitable<Reply::Array> Client::eval_many(const Script& script, std::vector<ScriptCall> calls,
                                                std::optional<Millis> timeout) {
  return route_->eval_many(script, std::move(calls), timeout);
}

}  // namespace weir::redis

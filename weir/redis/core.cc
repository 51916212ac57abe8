// The queue of a client: what any thread may do. The connection is in connection.cc.
#include "weir/redis/core.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

namespace weir::redis {

namespace asio = boost::asio;

namespace {

std::string within(const Call& call) {
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(call.deadline - call.begun);
  return std::to_string(time.count()) + " ms";
}

}  // namespace

Core::Core(const asio::any_io_executor& executor, Options options)
    : options_(std::move(options)),
      endpoint_(options_.address.endpoint()),
      metrics_(options_.name),
      strand_(asio::make_strand(executor)),
      socket_(std::make_shared<asio::ip::tcp::socket>(strand_)),
      resolver_(strand_),
      deadline_timer_(strand_),
      attempt_timer_(strand_),
      pause_timer_(strand_),
      buffer_(kReadBuffer),
      hook_(telemetry::on_scrape([this] { publish(); })) {}

void Core::start() {
  asio::co_spawn(strand_, live(shared_from_this()), asio::detached);
}

asio::awaitable<Reply> Core::run(CallPtr call) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr, Reply)>(
      [](auto handler, const std::shared_ptr<Core>& core, const CallPtr& begun) {
        // Its work is counted: the coroutine's context doesn't end while it waits.
        begun->executor =
            asio::prefer(asio::get_associated_executor(handler), asio::execution::outstanding_work.tracked);
        auto slot = asio::get_associated_cancellation_slot(handler);
        begun->handler = [handler = std::move(handler)](std::exception_ptr error, Reply reply) mutable {
          std::move(handler)(std::move(error), std::move(reply));
        };
        // Before it is in the queue: from then on it may be resumed, elsewhere, at any moment. To own the
        // call would be a circle (handler, coroutine, slot), and a late emission finds nobody.
        if (slot.is_connected()) {
          slot.assign([weak = core->weak_from_this(),
                       waiter = std::weak_ptr<Call>(begun)](asio::cancellation_type type) {
            const auto alive = weak.lock();
            const auto waiting = waiter.lock();
            if (alive && waiting && type != asio::cancellation_type::none) alive->cancel(waiting);
          });
        }
        core->enqueue(begun);
      },
      asio::use_awaitable, shared_from_this(), std::move(call));
}

bool Core::connected() const {
  const Lock lock(mutex_);
  return connected_;
}
bool Core::down() const {
  const Lock lock(mutex_);
  return down_;
}
std::size_t Core::waiting() const {
  const Lock lock(mutex_);
  return queued_.size() + sent_.size();
}

void Core::enqueue(const CallPtr& call) {
  AllFinished finished;
  bool flush_now = false;
  bool arm_now = false;
  {
    const Lock lock(mutex_);
    if (!call->handler) return;  // cancelled already
    call->metrics = &metrics_.of(call->name);
    if (auto error = refusal(*call)) {
      finish(*call, Ending::not_done, std::move(error), {}, finished);
    } else {
      call->place = Call::Place::queued;
      call->at = queued_.insert(queued_.end(), call);
      waiting_bytes_ += call->bytes.size();
      flush_now = connected_ && !writing_ && !std::exchange(flush_comes_, true);
      if (call->deadline < check_at_) {
        check_at_ = call->deadline;
        arm_now = true;
      }
    }
  }
  if (flush_now) asio::post(strand_, [self = shared_from_this()] { self->flush(); });
  if (arm_now) asio::post(strand_, [self = shared_from_this()] { self->arm(); });
  resume(std::move(finished));
}

std::exception_ptr Core::refusal(const Call& call) const {
  if (stopped_) return not_done(call, "the client was stopped");
  if (down_ && options_.fail_fast) return not_done(call, "no connection: " + last_failure_);
  const bool first = queued_.empty() && sent_.empty();
  if (queued_.size() + sent_.size() >= options_.max_waiting ||
      (!first && waiting_bytes_ + call.bytes.size() > options_.max_waiting_bytes))
    return not_done(call, "too many calls are waiting");
  return nullptr;
}

void Core::cancel(const CallPtr& call) {
  AllFinished finished;
  {
    const Lock lock(mutex_);
    if (!call->handler) return;
    const auto error = std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted));
    finish(*call, Ending::cancelled, error, {}, finished);
    // What was sent stays, without anybody who waits: its reply is still to come, in its turn.
    if (call->place == Call::Place::queued) drop(*call);
  }
  resume(std::move(finished));
}

void Core::finish(Call& call, Ending ending, std::exception_ptr error, Reply reply, AllFinished& out) {
  if (!call.handler) return;
  if (call.metrics != nullptr) {
    call.metrics->count(ending);
    const std::chrono::duration<double> took = Clock::system().steady_now() - call.begun;
    call.metrics->duration.observe(took.count());
  }
  out.push_back({std::exchange(call.handler, {}), std::exchange(call.executor, {}), std::move(error),
                 std::move(reply)});
}

void Core::drop(Call& call) {
  waiting_bytes_ -= call.bytes.size();
  call.bytes = {};
  auto& list = call.place == Call::Place::queued ? queued_ : sent_;
  call.place = Call::Place::nowhere;
  list.erase(call.at);  // which may be the last to hold the call
}

void Core::fail_all(Calls& calls, const std::string& why, AllFinished& out) {
  while (!calls.empty()) {
    Call& call = *calls.front();
    const bool was_sent = call.sends > 0;
    finish(call, was_sent ? Ending::unknown : Ending::not_done,
           was_sent ? unknown(call, why) : not_done(call, why), {}, out);
    drop(call);
  }
}

std::exception_ptr Core::not_done(const Call& call, const std::string& why) const {
  return std::make_exception_ptr(NotDone(call.name + " to Redis at " + endpoint_ + " not done: " + why));
}
std::exception_ptr Core::unknown(const Call& call, const std::string& why) const {
  return std::make_exception_ptr(
      UnknownOutcome(call.name + " to Redis at " + endpoint_ + " unanswered, unknown whether done: " + why));
}

void Core::resume(AllFinished finished) {
  for (auto& one : finished) {
    auto executor = std::move(one.executor);
    asio::post(executor,
               [handler = std::move(one.handler), executor, error = std::move(one.error),
                reply = std::move(one.reply)]() mutable { handler(std::move(error), std::move(reply)); });
  }
}

SteadyTime Core::expire(SteadyTime now, AllFinished& out) {
  SteadyTime next = SteadyTime::max();
  for (auto at = queued_.begin(); at != queued_.end();) {
    Call& call = **at++;
    if (call.deadline > now) {
      next = std::min(next, call.deadline);
      continue;
    }
    std::string why = connected_ ? "it wasn't sent within " : "no connection within ";
    why += within(call);
    if (!connected_) why += ": " + last_failure_;
    // Sent once, on a connection that broke: it may have been done then.
    if (call.sends > 0) {
      finish(call, Ending::unknown, unknown(call, why), {}, out);
    } else {
      finish(call, Ending::timeout, not_done(call, why), {}, out);
    }
    drop(call);
  }
  for (const auto& call : sent_) {
    if (!call->handler) continue;
    if (call->deadline > now) {
      next = std::min(next, call->deadline);
      continue;
    }
    const auto error = TimedOut(call->name + " to Redis at " + endpoint_ + ": no answer within " +
                                within(*call) + ", unknown whether done");
    finish(*call, Ending::timeout, std::make_exception_ptr(error), {}, out);
  }
  return next;
}

void Core::publish() {
  const Lock lock(mutex_);
  metrics_.connected.set(connected_ ? 1 : 0);
  metrics_.waiting.set(static_cast<double>(queued_.size() + sent_.size()));
  metrics_.waiting_bytes.set(static_cast<double>(waiting_bytes_));
}

void Core::stop() {
  AllFinished finished;
  {
    const Lock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    connected_ = false;
    fail_all(sent_, "the client was stopped", finished);
    fail_all(queued_, "the client was stopped", finished);
  }
  asio::post(strand_, [self = shared_from_this()] {
    self->close();
    self->deadline_timer_.cancel();
    self->pause_timer_.cancel();
  });
  publish();  // for the last time: 0
  resume(std::move(finished));
}

}  // namespace weir::redis

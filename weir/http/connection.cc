#include "weir/http/connection.h"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include "weir/telemetry/log.h"

namespace weir::http {
namespace {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

// `deferred` lets the awaiting coroutine start the operation itself; use_awaitable would make a frame for
// each.
constexpr auto kAwait = asio::deferred;

// A read is worth its system call only with some room.
constexpr std::size_t kHeadRoom = 1 << 10, kBodyRoom = 16 << 10;
// The line that begins a chunk, with its extensions, and the trailers behind the last.
constexpr std::size_t kMaxChunkHead = 4 << 10;
// Pipelined answers wait for each other up to this size.
constexpr std::size_t kMaxBatch = 64 << 10;
// A client may take a large answer at this rate at least, in bytes per second.
constexpr std::size_t kSlowestClient = 16 << 10;
// What a refused client may still send before it reads the answer.
constexpr std::size_t kMaxLingerBytes = 16 << 20;
constexpr std::chrono::milliseconds kMaxLinger{2000};
// A body's memory is kept for the next request up to this size.
constexpr std::size_t kKeptBody = 4 << 10;
// For a cancelled handler to end; then its client is answered without it.
constexpr std::chrono::milliseconds kCancelGrace{250};

}  // namespace

void Connection::start(Worker& worker, asio::ip::tcp::socket& socket, bool too_many) {
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const auto peer = socket.remote_endpoint(ignored).address();
  auto self = std::make_shared<Connection>(worker, socket, peer, too_many);
  auto slot = self->cancel_.slot();
  asio::co_spawn(
      worker.context, [self]() { return self->run(); },
      asio::bind_cancellation_slot(slot, [self](const std::exception_ptr& error) {
        // Nothing of the connection may outlive it, and its timer would.
        self->timer_.cancel();
        self->stream_.close();
        try {
          if (error) std::rethrow_exception(error);
        } catch (const std::exception& e) {
          telemetry::swallowed("http.connection", e);
        }
      }));
}

Connection::Connection(Worker& worker, asio::ip::tcp::socket& socket, const asio::ip::address& peer,
                       bool too_many)
    : worker_(worker),
      options_(worker.shared.options),
      stream_(socket.release()),
      timer_(worker.context),
      too_many_(too_many),
      peer_(peer.to_string()),
      behind_proxy_(worker.shared.proxies.trusted(peer)) {
  worker_.shared.opened();
}

Connection::~Connection() {
  worker_.memory.hold(*this, 0, false);
  if (joined_) worker_.connections.erase(place_);
  worker_.shared.closed();
}

void Connection::join() {
  place_ = worker_.connections.insert(worker_.connections.end(), this);
  joined_ = true;
  stream_.watch_by(worker_.poller);
}

asio::awaitable<void> Connection::run() {
  join();
  if (too_many_) co_return co_await refuse(unavailable("Too many connections are open."));
  for (;;) {
    HeadScanner scanner(worker_.shared.head_limits);
    auto state = scanner.scan(input_.unread());
    while (state == HeadScanner::State::more) {
      if (!output_.empty() && worker_.poller.delivering()) co_await stream_.wait_for_turn(kAwait);
      if (!write_now() && !co_await write_rest()) co_return;
      if (!await_bytes()) co_return;
      co_await stream_.wait_for_input(kAwait);
      now_ = SteadyClock::now();
      if (expired_) {
        if (phase_ == Phase::idle) co_return;
        co_return co_await refuse(too_slow("The head took too long to come."));
      }
      if (!receive(kHeadRoom)) co_return;
      state = scanner.scan(input_.unread());
    }
    if (state != HeadScanner::State::complete) co_return co_await refuse(problem_of(state));
    if (auto problem = parse_head(scanner)) co_return co_await refuse(std::move(*problem));
    if (!parser_->is_done() && !co_await read_body()) co_return;
    holds(false);

    Dispatcher::Plan plan = begin_request();
    Response response = plan.answer ? std::move(*plan.answer) : Response();
    if (!plan.answer) {
      if (!output_.empty()) write_if_suspended();
      cancelled_ = false;
      enter(Phase::handling, options_.request_deadline);
      std::exception_ptr error;
      try {
        response = co_await plan.entry->route.handler(request_);
      } catch (...) {
        error = std::current_exception();
      }
      now_ = SteadyClock::now();
      if (phase_ == Phase::answered) {
        if (write_now() || co_await write_rest()) stream_.shutdown_send();
        co_return;
      }
      // A handler may have been cancelled, or have shut cancellation out; the next one begins afresh.
      co_await asio::this_coro::reset_cancellation_state();
      if (error) {
        response = expired_ ? unavailable("This took too long.").response()
                            : Dispatcher::failed(request_, label_, error);
      }
    }
    phase_ = Phase::busy;
    const bool keep_alive = finish_request(std::move(response));
    if (keep_alive && !output_.full() && output_.size() < kMaxBatch) continue;
    if (!write_now() && !co_await write_rest()) co_return;
    if (!keep_alive) co_return co_await linger();
  }
}

// Reads what has come, if anything has; false when nothing more will.
bool Connection::receive(std::size_t least_room) {
  const auto transfer = stream_.read(input_.room(least_room));
  input_.received(transfer.count);
  return !transfer.ended;
}

// Tells what is held for the client, and whether the connection waits for it now; false when it is too much.
bool Connection::holds(bool waits) {
  return worker_.memory.hold(*this, input_.capacity() + request_.body.capacity() + output_.memory(), waits);
}

// Its coroutine may have to wait for its turn behind others, who each ask for more: the memory goes now.
void Connection::give_up() {
  given_up_ = true;
  output_.drop();
  request_.body = std::string();
  expire();
}

// What to answer to a client that was waited for in vain.
Problem Connection::too_slow(const char* detail) const {
  if (given_up_) return unavailable("Too much is being sent at once; this was the slowest.");
  return {408, "request_timeout", detail};
}

// Sets the phase for a read that may bring the rest of a head, or a new one; false when there is nothing to
// wait for.
bool Connection::await_bytes() {
  if (input_.unread().empty()) {
    if (worker_.draining) return false;
    enter(Phase::idle, options_.idle_deadline);
  } else if (phase_ != Phase::head) {
    enter(Phase::head, options_.head_deadline);
  }
  holds(true);
  return true;
}

std::optional<Problem> Connection::parse_head(const HeadScanner& scanner) {
  parser_.emplace(request_, options_.max_body);
  parser_->header_limit(static_cast<std::uint32_t>(options_.max_head));
  const std::string_view head = input_.unread().substr(scanner.begin(), scanner.end() - scanner.begin());
  boost::system::error_code error;
  parser_->put(asio::buffer(head), error);
  message_end_ = scanner.end();
  if (error) return RequestParser::problem_of(error, head);
  return parser_->fault();
}

// Before any of it is asked for: a route that takes little isn't sent much.
std::optional<Problem> Connection::limit_body() {
  const std::size_t limit =
      std::min(options_.max_body, worker_.shared.dispatcher.body_limit(parser_->method(), parser_->target()));
  parser_->body_limit(limit);
  const auto announced = parser_->content_length();
  if (!announced || *announced <= limit) return std::nullopt;
  return RequestParser::problem_of(boost::beast::http::error::body_limit);
}

asio::awaitable<bool> Connection::read_body() {
  const std::size_t head_end = message_end_;
  if (auto problem = limit_body()) {
    co_await refuse(std::move(*problem));
    co_return false;
  }
  if (!parser_->expectation().empty() && !parser_->http_1_0() && input_.unread().size() == head_end) {
    output_.text() += "HTTP/1.1 100 Continue\r\n\r\n";
  }
  if (!write_now() && !co_await write_rest()) co_return false;
  enter(Phase::body, options_.body_deadline);
  for (;;) {
    boost::system::error_code error;
    while (!error && !parser_->is_done() && message_end_ < input_.unread().size()) {
      message_end_ += parser_->put(asio::buffer(input_.unread().substr(message_end_)), error);
    }
    if (parser_->is_done() && !error) co_return true;
    if (error && error != boost::beast::http::error::need_more) {
      co_await refuse(RequestParser::problem_of(error));
      co_return false;
    }
    // What is parsed has been copied to the body; the head stays where the request's views find it.
    input_.erase(head_end, message_end_);
    message_end_ = head_end;
    if (input_.unread().size() - head_end > kMaxChunkHead) {
      co_await refuse({400, "bad_request", "The head of a chunk is too long."});
      co_return false;
    }
    if (!holds(true)) {
      co_await refuse(unavailable("Too much is being sent at once."));
      co_return false;
    }
    co_await stream_.wait_for_input(kAwait);
    now_ = SteadyClock::now();
    if (expired_) {
      co_await refuse(too_slow("The body took too long to come."));
      co_return false;
    }
    const std::string_view before = input_.unread();
    const auto room = input_.room(kBodyRoom);
    parser_->rebase(before, input_.unread());
    const auto transfer = stream_.read(room);
    if (transfer.ended) co_return false;
    input_.received(transfer.count);
  }
}

Dispatcher::Plan Connection::begin_request() {
  started_ = now_;
  request_.peer = peer_;
  if (behind_proxy_) worker_.shared.proxies.look_behind(request_);
  take_request_id();
  try {
    request_.set_target(parser_->method(), parser_->target());
  } catch (const Problem& problem) {
    Dispatcher::Plan plan;
    plan.answer = problem.response();
    label_ = plan.label;
    return plan;
  }
  Dispatcher::Plan plan = worker_.shared.dispatcher.plan(request_);
  label_ = plan.label;
  return plan;
}

// A client's id is taken over if it can't hurt a log or a header.
void Connection::take_request_id() {
  constexpr std::size_t kMaxRequestId = 64;
  const auto sent = request_.header("X-Request-Id");
  const bool sane =
      sent && !sent->empty() && sent->size() <= kMaxRequestId &&
      sent->find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
          std::string_view::npos;
  if (sane) {
    request_.request_id = *sent;
  } else {
    worker_.make_request_id(request_.request_id);
  }
}

// Puts the answer into the output; tells whether another request may follow.
bool Connection::finish_request(Response response) {
  const bool keep_alive = parser_->keep_alive() && !worker_.draining;
  worker_.shared.dispatcher.allow_origin(request_, response);
  if (!has_safe_headers(response)) {
    log::error("{} {} answered a header with control characters (request {})", request_.method, label_,
               request_.request_id);
    response = Problem(500, "internal_error", "Something went wrong here; it has been noted.").response();
  }
  answer(std::move(response), label_, keep_alive);
  request_.clear();  // before the bytes that its views point into
  parser_.reset();
  input_.consume(message_end_);
  if (request_.body.capacity() > kKeptBody) request_.body = std::string();
  return keep_alive;
}

// Puts the answer into the output, and tells the metrics and the log.
void Connection::answer(Response response, std::string_view label, bool keep_alive) {
  append_head(output_.text(), response,
              {.date = worker_.date.at(worker_.shared.clock.now()),
               .request_id = request_.request_id,
               .keep_alive = keep_alive,
               .http_1_0 = parser_ && parser_->http_1_0()});
  const std::size_t head_end = output_.size();
  if (request_.method != "HEAD" && response.status != 204 && response.status != 304)
    output_.append_body(response);
  record(label, response.status, output_.size() - head_end);
}

void Connection::record(std::string_view label, unsigned status, std::size_t bytes) {
  const double seconds = std::chrono::duration<double>(now_ - started_).count();
  worker_.observe(label, request_.method, status, seconds);
  if (options_.access_log == AccessLogLevel::none ||
      (options_.access_log == AccessLogLevel::errors && status < 500))
    return;
  worker_.shared.access_log->add(worker_.number,
                                 {.method = std::string(request_.method),
                                  .path = std::string(request_.path),
                                  .peer = request_.peer,
                                  .request_id = request_.request_id,
                                  .route = label,
                                  .status = status,
                                  .bytes = bytes,
                                  .seconds = seconds,
                                  .user_id = request_.principal ? request_.principal->user_id : 0});
}

// Answers what can't be served and closes: where the next request would begin is not known any more.
asio::awaitable<void> Connection::refuse(Problem problem) {
  started_ = now_;
  request_.peer = peer_;
  request_.method = {};
  request_.body = std::string();
  take_request_id();
  answer(problem.response(), "none", false);
  if (write_now() || co_await write_rest()) co_await linger();
}

// Sends what the socket takes at once; true when nothing is left.
bool Connection::write_now() {
  while (!output_.empty() && !broken_) {
    const auto transfer = stream_.write(output_.buffers());
    output_.sent(transfer.count);
    broken_ = transfer.ended;
    if (transfer.count == 0) return false;
  }
  return !broken_;
}

// Sends the rest as the client takes it; false when the connection is no use any more.
asio::awaitable<bool> Connection::write_rest() {
  const auto extra = std::chrono::seconds(output_.size() / kSlowestClient);
  const auto last = now_ + options_.write_deadline + extra;
  while (!broken_ && !output_.empty() && holds(true)) {
    // Who takes nothing at all isn't given the time that a large answer needs.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(last - now_);
    enter(Phase::writing, std::min<std::chrono::milliseconds>(options_.write_deadline, left));
    for (const std::size_t size = output_.size(); !broken_ && output_.size() == size;) {
      co_await stream_.wait_for_room(kAwait);
      if (expired_) co_return false;
      write_now();
    }
    now_ = SteadyClock::now();
  }
  phase_ = Phase::busy;
  holds(false);
  co_return !broken_ && output_.empty();
}

// Answers to earlier pipelined requests shouldn't wait for a handler that waits. This runs only once the
// handler has suspended; when it ends without, its answer leaves with theirs.
void Connection::write_if_suspended() {
  asio::post(worker_.context, [self = shared_from_this()] {
    if (self->phase_ == Phase::handling) self->write_now();
  });
}

// Closing while the client still sends would reset the connection, and the client might never see the answer.
// So: say that nothing more will come, and let it end.
asio::awaitable<void> Connection::linger() {
  stream_.shutdown_send();
  enter(Phase::lingering, kMaxLinger);
  for (std::size_t discarded = 0; discarded < kMaxLingerBytes && !worker_.cutting;) {
    input_.consume(input_.unread().size());
    holds(true);
    co_await stream_.wait_for_input(kAwait);
    if (expired_ || !receive(kBodyRoom)) co_return;
    discarded += input_.unread().size();
  }
}

void Connection::drain() {
  if (phase_ == Phase::idle) stream_.wake();
}

void Connection::cut() {
  expire();
  if (phase_ != Phase::handling) stream_.close();
}

void Connection::enter(Phase phase, std::chrono::milliseconds allowed) {
  phase_ = phase;
  expired_ = false;
  deadline_ = now_ + allowed;
  if (deadline_ < armed_for_) schedule(deadline_);
}

void Connection::schedule(Time at) {
  armed_for_ = at;
  timer_.expires_at(at);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->on_timer();
  });
}

void Connection::on_timer() {
  armed_for_ = Time::max();
  if (!stream_.is_open()) return;
  if (SteadyClock::now() < deadline_) {
    schedule(deadline_);
  } else {
    expire();
  }
}

void Connection::expire() {
  expired_ = true;
  deadline_ = Time::max();
  if (phase_ != Phase::handling) {
    stream_.wake();
  } else if (!cancelled_) {
    cancelled_ = true;
    deadline_ = SteadyClock::now() + kCancelGrace;
    if (deadline_ < armed_for_) schedule(deadline_);
    cancel_.emit(asio::cancellation_type::terminal);
  } else {
    answer_without_handler();
  }
}

// The handler waits for something that can't be cancelled. Its client need not; the connection ends with it.
void Connection::answer_without_handler() {
  now_ = SteadyClock::now();
  answer(unavailable("This took too long.").response(), label_, false);
  if (write_now()) stream_.shutdown_send();
  phase_ = Phase::answered;
}

}  // namespace weir::http

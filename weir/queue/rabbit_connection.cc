#include "weir/queue/rabbit_connection.h"

#include <amqp_tcp_socket.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace weir::queue::detail {
namespace {

constexpr amqp_channel_t kChannel = 1;
// What the client library offers by default; the broker has the last word.
constexpr int kMaxFrame = 131'072;
constexpr int kMaxChannels = 2;

timeval to_timeval(std::chrono::milliseconds time) {
  return {.tv_sec = time.count() / 1'000, .tv_usec = time.count() % 1'000 * 1'000};
}

amqp_table_t to_table(RabbitConnection::Arguments arguments) {
  return {static_cast<int>(arguments.size()), const_cast<amqp_table_entry_t*>(arguments.data())};
}

amqp_table_entry_t yes(const char* name) {
  amqp_table_entry_t entry;
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entry.value.value.boolean = 1;
  return entry;
}

std::string text_of(int code, amqp_bytes_t text) {
  return std::to_string(code) + ' ' + std::string(to_view(text));
}

}  // namespace

void SocketBreaker::break_now() noexcept {
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

void SocketBreaker::watch(int socket) noexcept {
  const std::lock_guard lock(mutex_);
  socket_ = socket;
}

WakeUp::WakeUp() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

WakeUp::~WakeUp() {
  ::close(event_);
}

void WakeUp::wake() noexcept {
  ::eventfd_write(event_, 1);
}

void WakeUp::wait(int socket, std::chrono::milliseconds at_most) noexcept {
  std::array<pollfd, 2> what{pollfd{event_, POLLIN, 0}, pollfd{socket, POLLIN, 0}};
  ::poll(what.data(), what.size(), static_cast<int>(std::max<std::int64_t>(at_most.count(), 0)));
  eventfd_t ignored;
  ::eventfd_read(event_, &ignored);
}

// --- The connection's life ---------------------------------------------------------------------------------

RabbitConnection::RabbitConnection(const RabbitLink& link, SocketBreaker* breaker)
    : place_(link.address.place()), breaker_(breaker), state_(amqp_new_connection()) {
  amqp_socket_t* socket = state_ ? amqp_tcp_socket_new(state_.get()) : nullptr;
  if (socket == nullptr) throw Unavailable("no memory for a connection to " + place_);
  const timeval patience = to_timeval(link.connect_timeout);
  check(amqp_socket_open_noblock(socket, link.address.host.c_str(), link.address.port, &patience), "connect");
  socket_ = amqp_get_sockfd(state_.get());
  if (breaker_ != nullptr) breaker_->watch(socket_);
  try {
    amqp_set_handshake_timeout(state_.get(), &patience);
    amqp_set_rpc_timeout(state_.get(), &patience);
    log_in(link);
    open_channel();
  } catch (...) {
    if (breaker_ != nullptr) breaker_->watch(-1);
    throw;
  }
}

RabbitConnection::~RabbitConnection() {
  if (breaker_ != nullptr) breaker_->watch(-1);
}

void RabbitConnection::log_in(const RabbitLink& link) {
  // Without them the broker wouldn't tell that it is blocked, that it refuses the password, or that a queue that is
  // consumed was deleted.
  std::array abilities{yes("connection.blocked"), yes("authentication_failure_close"),
                       yes("consumer_cancel_notify"), yes("publisher_confirms"), yes("basic.nack")};
  amqp_table_entry_t properties;
  properties.key = amqp_cstring_bytes("capabilities");
  properties.value.kind = AMQP_FIELD_KIND_TABLE;
  properties.value.value.table = to_table(abilities);
  const amqp_table_t table{1, &properties};
  check(amqp_login_with_properties(state_.get(), link.address.vhost.c_str(), kMaxChannels, kMaxFrame,
                                   static_cast<int>(link.heartbeat.count()), &table, AMQP_SASL_METHOD_PLAIN,
                                   link.address.user.c_str(), link.address.password.c_str()),
        "log in");
}

void RabbitConnection::open_channel() {
  amqp_channel_open(state_.get(), kChannel);
  check_answer("open a channel");
}

void RabbitConnection::close() noexcept {
  (void)amqp_connection_close(state_.get(), AMQP_REPLY_SUCCESS);
}

void RabbitConnection::check(int status, const char* what) const {
  if (status < 0)
    throw Unavailable(std::string(what) + ": " + amqp_error_string2(status) + " (" + place_ + ')');
}

void RabbitConnection::check(const amqp_rpc_reply_t& reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) check(reply.library_error, what);
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto& closed = *static_cast<amqp_channel_close_t*>(reply.reply.decoded);
    const Refused refused(
        closed.reply_code,
        std::string(what) + ": " + text_of(closed.reply_code, closed.reply_text) + " (" + place_ + ')');
    amqp_channel_close_ok_t ok{};
    check(amqp_send_method(state_.get(), kChannel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok), what);
    open_channel();
    throw refused;
  }
  std::string why = "no answer";
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto& closed = *static_cast<amqp_connection_close_t*>(reply.reply.decoded);
    why = text_of(closed.reply_code, closed.reply_text);
  }
  throw Unavailable(std::string(what) + ": " + why + " (" + place_ + ')');
}

// --- Requests ----------------------------------------------------------------------------------------------

void RabbitConnection::declare_exchange(const std::string& name, const char* kind, Arguments arguments) {
  amqp_exchange_declare(state_.get(), kChannel, to_bytes(name), amqp_cstring_bytes(kind), 0, 1, 0, 0,
                        to_table(arguments));
  check_answer("declare an exchange");
}

void RabbitConnection::declare_queue(const std::string& name, Arguments arguments) {
  amqp_queue_declare(state_.get(), kChannel, to_bytes(name), 0, 1, 0, 0, to_table(arguments));
  check_answer("declare a queue");
}

void RabbitConnection::declare_exclusive_queue(const std::string& name) {
  amqp_queue_declare(state_.get(), kChannel, to_bytes(name), 0, 0, 1, 1, amqp_empty_table);
  check_answer("declare a queue");
}

void RabbitConnection::delete_queue(const std::string& name) {
  amqp_queue_delete(state_.get(), kChannel, to_bytes(name), 0, 0);
  check_answer("delete a queue");
}

std::optional<std::int64_t> RabbitConnection::depth(const std::string& queue) {
  const auto* answer =
      amqp_queue_declare(state_.get(), kChannel, to_bytes(queue), 1, 1, 0, 0, amqp_empty_table);
  const std::int64_t count = answer != nullptr ? answer->message_count : 0;
  try {
    check_answer("look at a queue");
  } catch (const Refused& refused) {
    if (refused.code() == kNotFound) return std::nullopt;
    throw;
  }
  amqp_maybe_release_buffers(state_.get());
  return count;
}

void RabbitConnection::bind(const std::string& queue, const std::string& exchange, const std::string& key) {
  amqp_queue_bind(state_.get(), kChannel, to_bytes(queue), to_bytes(exchange), to_bytes(key),
                  amqp_empty_table);
  check_answer("bind a queue");
}

void RabbitConnection::confirm_publishes() {
  amqp_confirm_select(state_.get(), kChannel);
  check_answer("ask for confirms");
}

void RabbitConnection::begin() {
  amqp_tx_select(state_.get(), kChannel);
  check_answer("begin");
}

void RabbitConnection::commit() {
  amqp_tx_commit(state_.get(), kChannel);
  check_answer("commit");
}

void RabbitConnection::prefetch(std::uint16_t messages) {
  amqp_basic_qos(state_.get(), kChannel, 0, messages, 0);
  check_answer("set the prefetch");
}

void RabbitConnection::consume(const std::string& queue, const std::string& consumer) {
  amqp_basic_consume(state_.get(), kChannel, to_bytes(queue), to_bytes(consumer), 0, 0, 0, amqp_empty_table);
  check_answer("consume");
}

std::optional<RabbitConnection::Got> RabbitConnection::get(const std::string& queue) {
  const amqp_rpc_reply_t reply = amqp_basic_get(state_.get(), kChannel, to_bytes(queue), 0);
  check(reply, "get a message");
  if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return std::nullopt;
  Got got{static_cast<amqp_basic_get_ok_t*>(reply.reply.decoded)->delivery_tag, {}};
  amqp_message_t message;
  check(amqp_read_message(state_.get(), kChannel, &message, 0), "get a message");
  got.body = to_view(message.body);
  amqp_destroy_message(&message);
  amqp_maybe_release_buffers(state_.get());
  return got;
}

// --- What is only sent -------------------------------------------------------------------------------------

void RabbitConnection::publish(const std::string& exchange, const std::string& key, bool mandatory,
                               const amqp_basic_properties_t& properties, std::string_view body) {
  check(amqp_basic_publish(state_.get(), kChannel, to_bytes(exchange), to_bytes(key), mandatory ? 1 : 0, 0,
                           &properties, to_bytes(body)),
        "publish");
}

void RabbitConnection::acknowledge(std::uint64_t tag, bool and_before) {
  check(amqp_basic_ack(state_.get(), kChannel, tag, and_before ? 1 : 0), "acknowledge");
}

void RabbitConnection::give_back(std::uint64_t tag, bool and_before) {
  check(amqp_basic_nack(state_.get(), kChannel, tag, and_before ? 1 : 0, 1), "give back");
}

void RabbitConnection::reject(std::uint64_t tag) {
  check(amqp_basic_reject(state_.get(), kChannel, tag, 0), "reject");
}

// --- What comes by itself ----------------------------------------------------------------------------------

bool RabbitConnection::next_frame(amqp_frame_t& frame, std::chrono::milliseconds at_most) {
  // Not of all channels: for one that is silent, the library goes through all frames that wait.
  amqp_maybe_release_buffers_on_channel(state_.get(), kChannel);
  const timeval time = to_timeval(at_most);
  const int status = amqp_simple_wait_frame_noblock(state_.get(), &frame, &time);
  if (status == AMQP_STATUS_TIMEOUT) return false;
  check(status, "read");
  throw_if_closed(frame);
  return true;
}

void RabbitConnection::throw_if_closed(const amqp_frame_t& frame) const {
  if (frame.frame_type != AMQP_FRAME_METHOD) return;
  const auto& method = frame.payload.method;
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto& closed = *static_cast<amqp_connection_close_t*>(method.decoded);
    throw Unavailable("the broker closes the connection: " + text_of(closed.reply_code, closed.reply_text));
  }
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto& closed = *static_cast<amqp_channel_close_t*>(method.decoded);
    throw Unavailable("the broker closes the channel: " + text_of(closed.reply_code, closed.reply_text));
  }
  if (method.id == AMQP_BASIC_CANCEL_METHOD)
    throw Unavailable("the broker ends a consumer: its queue was deleted, or its node is gone");
}

}  // namespace weir::queue::detail

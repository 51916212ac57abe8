// RabbitConnection: one connection to a RabbitMQ broker with one channel, of one thread at a time. Internal.
//
// It lives until it is lost: what it throws then is Unavailable, and nothing else can be done with it. Only a
// Refused leaves it as good as before.
#pragma once

#include <amqp.h>
#include <amqp_framing.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/fault.h"
#include "weir/queue/rabbit_url.h"
#include "weir/queue/rabbit_wire.h"

namespace weir::queue::detail {

struct RabbitLink {
  RabbitAddress address;
  std::chrono::milliseconds connect_timeout;  // for the socket, then for the handshake, then for each request
  std::chrono::seconds heartbeat;
};

// Lets another thread end whatever a connection waits for: the connection is lost then. Thread-safe.
class SocketBreaker {
 public:
  void break_now() noexcept;
  // For the connection: the socket, or -1 before it is closed.
  void watch(int socket) noexcept;

 private:
  std::mutex mutex_;
  int socket_ = -1;
};

// What wakes a thread that waits for a socket. Thread-safe.
class WakeUp {
 public:
  // Throws std::system_error when the system has no more descriptors.
  WakeUp();
  ~WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  void wake() noexcept;
  // Until somebody wakes it, `socket` (unless it is -1) has something to read, or the time is over.
  void wait(int socket, std::chrono::milliseconds at_most) noexcept;

 private:
  int event_;
};

class RabbitConnection {
 public:
  // The broker has refused a request, with a code of AMQP's.
  class Refused : public Unavailable {
   public:
    Refused(int code, const std::string& text) : Unavailable(text), code_(code) {}
    int code() const { return code_; }

   private:
    int code_;
  };
  static constexpr int kNotFound = 404, kLocked = 405, kOtherArguments = 406;

  // Connects and opens the channel. The breaker, if there is one, must outlive the connection.
  explicit RabbitConnection(const RabbitLink& link, SocketBreaker* breaker = nullptr);
  ~RabbitConnection();
  RabbitConnection(const RabbitConnection&) = delete;
  RabbitConnection& operator=(const RabbitConnection&) = delete;

  // Requests: they wait for the answer.
  using Arguments = std::span<const amqp_table_entry_t>;
  void declare_exchange(const std::string& name, const char* kind, Arguments arguments = {});
  void declare_queue(const std::string& name, Arguments arguments);
  // Of this connection alone: Refused with kLocked while another has it; gone with its connection.
  void declare_exclusive_queue(const std::string& name);
  void delete_queue(const std::string& name);
  // How many messages wait in a queue; nothing when there is no such queue.
  std::optional<std::int64_t> depth(const std::string& queue);
  void bind(const std::string& queue, const std::string& exchange, const std::string& key);
  void confirm_publishes();
  // For all that is sent and acknowledged from here on: it is done, on the disk too, when commit() returns.
  void begin();
  void commit();
  void prefetch(std::uint16_t messages);
  // The deliveries carry the consumer's tag.
  void consume(const std::string& queue, const std::string& consumer);
  // Takes one message, until it is acknowledged; nothing when there is none.
  struct Got {
    std::uint64_t tag;
    std::string body;
  };
  std::optional<Got> get(const std::string& queue);

  // These are sent, and that is all.
  void publish(const std::string& exchange, const std::string& key, bool mandatory,
               const amqp_basic_properties_t& properties, std::string_view body);
  void acknowledge(std::uint64_t tag, bool and_before);
  void give_back(std::uint64_t tag, bool and_before);
  void reject(std::uint64_t tag);

  // The next frame, valid until the next call; false when there is none in that time. Serves the heartbeats:
  // call it twice in each interval at least.
  bool next_frame(amqp_frame_t& frame, std::chrono::milliseconds at_most);
  int socket() const { return socket_; }

  // Says good-bye, so that what was sent before is done with. Doesn't throw.
  void close() noexcept;

 private:
  struct Destroy {
    void operator()(amqp_connection_state_t state) const { amqp_destroy_connection(state); }
  };

  void log_in(const RabbitLink& link);
  void open_channel();
  void check(int status, const char* what) const;
  void check(const amqp_rpc_reply_t& reply, const char* what);
  void check_answer(const char* what) { check(amqp_get_rpc_reply(state_.get()), what); }
  void throw_if_closed(const amqp_frame_t& frame) const;

  const std::string place_;
  SocketBreaker* const breaker_;
  std::unique_ptr<amqp_connection_state_t_, Destroy> state_;
  int socket_ = -1;
};

}  // namespace weir::queue::detail

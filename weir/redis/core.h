// Core: what a Client shares with its connection; both keep it alive.
//
// Two things are kept apart. The queue (`queued_`, `sent_`, and what else `mutex_` guards) is touched by any
// thread, in short steps without I/O. The connection (socket, timers) is touched on the strand alone. No
// handler is called with the mutex held.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/unique_function.h"
#include "weir/redis/client.h"
#include "weir/redis/client_metrics.h"
#include "weir/redis/reply_reader.h"

namespace weir::redis {

struct Call;
using CallPtr = std::shared_ptr<Call>;
using Calls = std::list<CallPtr>;  // a call moves between lists, and leaves from anywhere, without a copy

// How often an idempotent call is sent at most: a command that kills the server must not do so for ever.
inline constexpr unsigned kMaxSends = 3;

// One or more commands that go out together, and who waits for their replies.
struct Call {
  using Handler = UniqueFunction<void(std::exception_ptr, Reply)>;
  enum class Place { nowhere, queued, sent };

  std::string name;   // of the command
  std::string bytes;  // given up when they are sent, unless the call is idempotent
  std::size_t replies = 1;
  bool several = false;  // the answer is an array of the replies
  bool idempotent = false;
  SteadyTime begun, deadline;

  CommandMetrics* metrics = nullptr;
  Handler handler{};  // empty: nobody waits (any more)
  boost::asio::any_io_executor executor{};
  Reply::Array answers{};
  unsigned sends = 0;  // not zero from the beginning: another connection broke under it
  SteadyTime sent_at{};
  Place place = Place::nowhere;
  Calls::iterator at{};
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(const boost::asio::any_io_executor& executor, Options options);

  void start();
  void stop();

  // The call's end, whichever it is, resumes the awaiting coroutine.
  boost::asio::awaitable<Reply> run(CallPtr call);

  bool connected() const;
  bool down() const;  // the last attempt to connect has failed
  std::size_t waiting() const;
  const Options& options() const { return options_; }

 private:
  using Lock = std::lock_guard<std::mutex>;
  // A call that has ended, out of the queue.
  struct Finished {
    Call::Handler handler;
    boost::asio::any_io_executor executor;
    std::exception_ptr error;
    Reply reply;
  };
  using AllFinished = std::vector<Finished>;
  struct Batch;

  // The queue: any thread.
  void enqueue(const CallPtr& call);
  std::exception_ptr refusal(const Call& call) const;  // locked
  void cancel(const CallPtr& call);
  void finish(Call& call, Ending ending, std::exception_ptr error, Reply reply, AllFinished& out);  // locked
  void drop(Call& call);                                                                            // locked
  void fail_all(Calls& calls, const std::string& why, AllFinished& out);                            // locked
  std::exception_ptr not_done(const Call& call, const std::string& why) const;
  std::exception_ptr unknown(const Call& call, const std::string& why) const;
  static void resume(AllFinished finished);

  // The connection: the strand.
  static boost::asio::awaitable<void> live(std::shared_ptr<Core> self);
  boost::asio::awaitable<void> connect(ReplyReader& reader);
  boost::asio::awaitable<void> open();
  boost::asio::awaitable<void> serve(ReplyReader& reader);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds time);
  void receive(std::string_view bytes, ReplyReader& reader);
  void take(Reply reply, AllFinished& out);  // locked
  void flush();
  bool gather(std::string& batch);  // locked
  void broken(const std::string& why, bool by_reply);
  void attempt_failed(const std::string& why);
  void check_attempt() const;  // throws when it is over
  void close();
  void arm();
  void sweep();
  SteadyTime expire(SteadyTime now, AllFinished& out);  // locked
  void publish();

  static constexpr std::size_t kReadBuffer = std::size_t{64} << 10;

  const Options options_;
  const std::string endpoint_;

  mutable std::mutex mutex_;
  ClientMetrics metrics_;
  Calls queued_, sent_;  // `sent_` in the order of the replies to come
  std::size_t waiting_bytes_ = 0;
  bool connected_ = false;
  bool down_ = false;  // the last attempt to connect failed
  bool stopped_ = false;
  bool writing_ = false;
  bool flush_comes_ = false;
  SteadyTime check_at_ = SteadyTime::max();  // when the timer fires
  SteadyTime last_received_{};
  std::string last_failure_ = "the first attempt is under way";

  boost::asio::strand<boost::asio::any_io_executor> strand_;
  // A new one for each connection: a write that is still under way must not find itself on the next.
  std::shared_ptr<boost::asio::ip::tcp::socket> socket_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer deadline_timer_, attempt_timer_, pause_timer_;
  bool attempting_ = false;
  bool attempt_over_ = false;
  bool given_up_ = false;  // for its silence
  std::vector<char> buffer_;
  Reply::Array replies_;
  telemetry::ScrapeHook hook_;  // the last to come and the first to go
};

}  // namespace weir::redis

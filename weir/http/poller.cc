#include "weir/http/poller.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <exception>

#include "weir/telemetry/metrics.h"

namespace weir::http {
namespace {

namespace asio = boost::asio;

// So many connections are served before timers and what others posted have their turn.
constexpr int kMaxEvents = 128;
constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

[[noreturn]] void fail(const char* call) {
  throw boost::system::system_error(errno, boost::system::system_category(), call);
}

int new_epoll_set() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) fail("epoll_create1");
  return set;
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

// Again when a signal came first.
template <class Call>
ssize_t uninterrupted(Call call) {
  for (;;) {
    const ssize_t count = call();
    if (count >= 0 || errno != EINTR) return count;
  }
}

// What fails for one stream must not cost the others their edges.
template <class F>
void serve(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    telemetry::swallowed("http.poller", e);
  }
}

}  // namespace

const std::uint32_t Stream::kInput = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
const std::uint32_t Stream::kRoom = EPOLLOUT | EPOLLHUP | EPOLLERR;

Poller::Poller(asio::io_context& context) : context_(context), set_(context, new_epoll_set()) {
  watch();
}

void Poller::watch() {
  set_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    deliver();
    watch();
  });
}

// A stream that ends another of the same batch would leave a pointer to nothing in it: coroutines end only
// themselves, and `wake` resumes others later.
void Poller::deliver() {
  std::array<epoll_event, kMaxEvents> events;
  const int count = ::epoll_wait(set_.native_handle(), events.data(), kMaxEvents, 0);
  delivering_ = true;
  for (int i = 0; i < count; ++i) {
    serve([&event = events[i]] { static_cast<Stream*>(event.data.ptr)->on_events(event.events); });
  }
  delivering_ = false;
  ending_.swap(turns_);
  for (Stream* stream : ending_) serve([stream] { stream->resume(); });
  ending_.clear();
}

Stream::~Stream() {
  if (socket_ >= 0) ::close(socket_);
}

void Stream::watch_by(Poller& poller) {
  poller_ = &poller;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = this;
  if (::epoll_ctl(poller.set_.native_handle(), EPOLL_CTL_ADD, socket_, &event) != 0) fail("epoll_ctl");
}

void Stream::on_events(std::uint32_t events) {
  if ((events & kInput) != 0) readable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) no_more_edges_ = true;
  if ((events & awaited_) == 0) return;
  resume();
}

void Stream::resume() {
  awaited_ = 0;
  // It may wait again before this returns.
  auto waiter = std::exchange(waiter_, {});
  if (waiter) waiter();
}

Stream::Transfer Stream::read(asio::mutable_buffer room) {
  if (!readable_) return {};
  const ssize_t count =
      uninterrupted([&] { return ::recv(socket_, room.data(), room.size(), MSG_DONTWAIT); });
  if (count < 0 && would_block() && !no_more_edges_) {
    readable_ = false;
    return {};
  }
  if (count <= 0) return {0, true};
  const auto received = static_cast<std::size_t>(count);
  readable_ = received == room.size() || no_more_edges_;
  return {received, false};
}

Stream::Transfer Stream::write(const std::array<asio::const_buffer, 2>& bytes) {
  std::array<iovec, 2> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = {const_cast<void*>(bytes[i].data()), bytes[i].size()};  // it is only read
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t count = uninterrupted([&] {
    // The plain call is the quicker one, and nearly every answer's.
    return parts[1].iov_len == 0 ? ::send(socket_, parts[0].iov_base, parts[0].iov_len, kFlags)
                                 : ::sendmsg(socket_, &message, kFlags);
  });
  if (count < 0) return {0, !would_block()};
  return {static_cast<std::size_t>(count), false};
}

void Stream::wake() {
  awaited_ = 0;
  if (waiter_) asio::post(poller_->context_, std::exchange(waiter_, {}));
}

void Stream::shutdown_send() {
  ::shutdown(socket_, SHUT_WR);
}

void Stream::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  wake();
}

}  // namespace weir::http

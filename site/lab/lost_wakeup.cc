// The lost wake-up: who does the work for all goes away, and nobody wakes those who wait.
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <unordered_map>

#include "site/lab/accidents.h"
#include "site/lab/loop.h"
#include "weir/base/id.h"
#include "weir/cache/single_flight.h"

namespace weir::site {
namespace {

namespace asio = boost::asio;

constexpr Id kKey = 1;
constexpr std::uint64_t kCallers = 10;

// A single flight as it is often written: the first caller loads and wakes the others afterwards.
class NaiveFlight {
 public:
  explicit NaiveFlight(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  template <class Load>
  asio::awaitable<std::string> run(Id key, Load load) {
    if (const auto at = open_.find(key); at != open_.end()) {
      const auto flight = at->second;
      co_await flight->done.wait();
      co_return flight->value;
    }
    const auto flight = open_[key] = std::make_shared<Flight>(executor_);
    flight->value = co_await load();  // when this throws, the lines below are never reached
    open_.erase(key);
    flight->done.let_go();
    co_return flight->value;
  }

 private:
  struct Flight {
    explicit Flight(const asio::any_io_executor& executor) : done(executor) {}
    Hold done;
    std::string value;
  };
  asio::any_io_executor executor_;
  std::unordered_map<Id, std::shared_ptr<Flight>> open_;
};

// Callers of one flight, whose load waits until it is let go; and how they ended.
template <class Flight>
class Callers {
 public:
  Callers(asio::io_context& io, Flight& flight) : io_(io), flight_(flight), hold_(io.get_executor()) {}
  // Who hangs is sent home.
  ~Callers() {
    for (std::size_t i = 0; i < started_; ++i) cancel(i);
  }
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  void come(std::size_t count) {
    for (; started_ < count; ++started_) {
      const auto load = [this]() -> asio::awaitable<std::string> {
        co_await hold_.wait();
        if (failing) throw Unavailable("the store is away");
        co_return "value";
      };
      const auto ended = [this, i = started_](const std::exception_ptr& error, const std::string&) {
        gone_.at(i) = true;
        ++(error ? errors : values);
      };
      asio::co_spawn(io_, flight_.run(kKey, load),
                     asio::bind_cancellation_slot(cancel_.at(started_).slot(), ended));
    }
    settle(io_);
  }
  void cancel(std::size_t caller) {
    if (!gone_.at(caller)) cancel_.at(caller).emit(asio::cancellation_type::terminal);
    settle(io_);
  }
  void let_the_load_go_on() {
    hold_.let_go();
    settle(io_);
  }
  // Nothing is ready any more, and they still wait.
  std::uint64_t hanging() const { return started_ - values - errors; }

  bool failing = false;
  std::uint64_t values = 0, errors = 0;

 private:
  asio::io_context& io_;
  Flight& flight_;
  Hold hold_;
  std::size_t started_ = 0;
  std::array<bool, kCallers> gone_{};
  std::array<asio::cancellation_signal, kCallers> cancel_;
};

struct Seen {
  std::uint64_t told = 0, hang_after_throw = 0;     // the leader's load throws
  std::uint64_t values = 0, hang_after_cancel = 0;  // the leader is cancelled
  bool next_call_works = false;                     // after both
};

template <class Flight>
bool next_call_works(asio::io_context& io, Flight& flight) {
  Callers next(io, flight);
  next.come(1);
  next.let_the_load_go_on();
  return next.values == 1;
}

template <class Flight>
Seen watch() {
  Seen seen;
  asio::io_context io;
  Flight throws(io.get_executor()), cancelled(io.get_executor());
  {
    Callers callers(io, throws);
    callers.failing = true;
    callers.come(kCallers);
    callers.let_the_load_go_on();
    seen.told = callers.errors;
    seen.hang_after_throw = callers.hanging();
    seen.next_call_works = next_call_works(io, throws);
  }
  {
    Callers callers(io, cancelled);
    callers.come(kCallers);
    callers.cancel(0);
    callers.let_the_load_go_on();
    seen.values = callers.values;
    seen.hang_after_cancel = callers.hanging();
    seen.next_call_works = next_call_works(io, cancelled) && seen.next_call_works;
  }
  return seen;
}

Outcome run() {
  const Seen bad = watch<NaiveFlight>(), good = watch<cache::SingleFlight<Id, std::string>>();
  const bool happened = bad.hang_after_throw == kCallers - 1 && bad.hang_after_cancel == kCallers - 1;
  const bool cured = good.told == kCallers && good.hang_after_throw == 0 && good.values == kCallers - 1 &&
                     good.hang_after_cancel == 0 && good.next_call_works;
  return {.held = happened && !bad.next_call_works && cured,
          .figures = {{"told_of_error", "the load throws: callers of 10 who are told", bad.told, good.told},
                      {"hanging_after_error", "the load throws: callers who wait for ever",
                       bad.hang_after_throw, good.hang_after_throw},
                      {"got_value", "the first caller is cancelled: others who get the value", bad.values,
                       good.values},
                      {"hanging_after_cancel", "the first caller is cancelled: others who wait for ever",
                       bad.hang_after_cancel, good.hang_after_cancel},
                      {"next_call_works", "the next call works", bad.next_call_works, good.next_call_works}}};
}

}  // namespace

Accident lost_wakeup() {
  return {
      .name = "lost-wakeup",
      .title = "who loads for all goes away, and nobody wakes the others",
      .before =
          "Ten callers share one load, which the first of them has started; then the load throws, and in a "
          "second run the first caller is cancelled (its client hangs up).",
      .without = "a naive single flight: the first caller loads, then wakes the others",
      .with = "SingleFlight: the load belongs to no caller, and every flight lands",
      .after =
          "The naive one never reaches the line that wakes, so nine wait for ever and so does the next call; "
          "in Weir all get the value or the error, and a cancelled caller ends its own wait alone.",
      .header =
          "weir/cache/single_flight.h and weir/cache/gate.h (for plain threads: weir/cache/thread_flight.h)",
      .run = run};
}

}  // namespace weir::site

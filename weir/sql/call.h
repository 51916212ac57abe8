// Call: a function of a session on its way through a Database's threads, with who waits for its result. A
// detail of database.h.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "weir/base/offload.h"

namespace weir::sql {
class Session;
}

namespace weir::sql::detail {

class Call {
 public:
  virtual ~Call() = default;
  // Runs the function and keeps what it left; whether it returned (rather than threw). Again only when the
  // work of the time before is undone.
  virtual bool run(Session& session) noexcept = 0;
  // What the function threw.
  virtual std::exception_ptr error() const noexcept = 0;
  // As if it hadn't run: a next try may fail before it runs, and then what this one left is of no concern.
  virtual void forget() noexcept = 0;
  // Hands over what run() left, or `error` if there is one and the function didn't throw by itself. Exactly
  // once, last; the function is gone before its caller goes on.
  virtual void finish(std::exception_ptr error) = 0;
};

template <class R, class F, class Complete>
class CallOf final : public Call {
 public:
  CallOf(F f, Complete complete) : f_(std::move(f)), complete_(std::move(complete)) {}

  bool run(Session& session) noexcept override {
    auto call = [&]() -> R { return (*f_)(session); };
    outcome_ = Outcome<R>::of(call);
    return !outcome_.error;
  }
  std::exception_ptr error() const noexcept override { return outcome_.error; }
  void forget() noexcept override { outcome_ = {}; }
  void finish(std::exception_ptr error) override {
    f_.reset();
    if (error && !outcome_.error) outcome_ = Outcome<R>{std::move(error), std::nullopt};
    complete_(std::move(outcome_));
  }

 private:
  std::optional<F> f_;
  Complete complete_;
  Outcome<R> outcome_;
};

template <class R, class F, class Complete>
std::unique_ptr<Call> make_call(F f, Complete complete) {
  return std::make_unique<CallOf<R, F, Complete>>(std::move(f), std::move(complete));
}

}  // namespace weir::sql::detail

// UniqueFunction<R(A..)>: std::function for callables that can only be moved (C++23 has
// std::move_only_function).
#pragma once

#include <memory>
#include <utility>

namespace weir {

template <class Signature>
class UniqueFunction;

template <class R, class... A>
class UniqueFunction<R(A...)> {
 public:
  UniqueFunction() = default;
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, UniqueFunction> && std::is_invocable_r_v<R, F&, A...>)
  UniqueFunction(F f) : call_(std::make_unique<Holder<F>>(std::move(f))) {}  // implicit, as std::function is

  explicit operator bool() const { return call_ != nullptr; }
  R operator()(A... args) { return call_->call(std::forward<A>(args)...); }

 private:
  struct Call {
    virtual ~Call() = default;
    virtual R call(A... args) = 0;
  };
  template <class F>
  struct Holder final : Call {
    explicit Holder(F g) : f(std::move(g)) {}
    R call(A... args) override { return f(std::forward<A>(args)...); }
    F f;
  };
  std::unique_ptr<Call> call_;
};

}  // namespace weir

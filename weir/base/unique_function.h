// UniqueFunction<R(A..)>: std::function for callables that can only be moved (C++23 has
// std::move_only_function). One of up to three pointers' size is kept in place, without an allocation.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
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
  UniqueFunction(F f) {  // implicit, as std::function is
    if constexpr (kInPlace<F>) {
      new (&place_) F(std::move(f));
      actions_ = &kActionsInPlace<F>;
    } else {
      new (&place_) F*(new F(std::move(f)));
      actions_ = &kActionsOnHeap<F>;
    }
  }
  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  UniqueFunction(const UniqueFunction&) = delete;
  UniqueFunction& operator=(const UniqueFunction&) = delete;
  ~UniqueFunction() { reset(); }

  explicit operator bool() const { return actions_ != nullptr; }
  // Undefined when it is empty.
  R operator()(A... args) { return actions_->call(&place_, std::forward<A>(args)...); }

 private:
  static constexpr std::size_t kPlace = 3 * sizeof(void*);
  template <class F>
  static constexpr bool kInPlace =
      sizeof(F) <= kPlace && alignof(F) <= alignof(void*) && std::is_nothrow_move_constructible_v<F>;

  struct Actions {
    R (*call)(void* place, A... args);
    void (*move)(void* from, void* to) noexcept;  // and destroys what is moved from
    void (*destroy)(void* place) noexcept;
  };
  template <class F>
  static F& in_place(void* place) {
    return *std::launder(static_cast<F*>(place));
  }
  template <class F>
  static constexpr Actions kActionsInPlace{
      [](void* place, A... args) -> R { return in_place<F>(place)(std::forward<A>(args)...); },
      [](void* from, void* to) noexcept {
        new (to) F(std::move(in_place<F>(from)));
        in_place<F>(from).~F();
      },
      [](void* place) noexcept { in_place<F>(place).~F(); }};
  template <class F>
  static constexpr Actions kActionsOnHeap{
      [](void* place, A... args) -> R { return (*in_place<F*>(place))(std::forward<A>(args)...); },
      [](void* from, void* to) noexcept { new (to) F*(in_place<F*>(from)); },
      [](void* place) noexcept { delete in_place<F*>(place); }};

  void take(UniqueFunction& other) noexcept {
    if (other.actions_ == nullptr) return;
    other.actions_->move(&other.place_, &place_);
    actions_ = std::exchange(other.actions_, nullptr);
  }
  // Empty before the callable dies: its end may come back here.
  void reset() noexcept {
    if (const Actions* actions = std::exchange(actions_, nullptr)) actions->destroy(&place_);
  }

  alignas(void*) std::byte place_[kPlace];
  const Actions* actions_ = nullptr;
};

}  // namespace weir

#pragma once
// Result<T>: a value or an Error. `TRY(expression)` takes the value out or returns the error to the caller:
//
//   Result<int> twice(std::string_view text) {
//     int n = TRY(parse_int(text));
//     return 2 * n;
//   }
//
// Not std::expected: it needs C++23, and gcc 12's has no and_then.

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "ground/base/error.h"

namespace systole {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : data_(std::in_place_index<1>, std::move(error)) {}
  template <typename U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, T> &&
           !std::is_same_v<std::decay_t<U>, Error> && !std::is_same_v<std::decay_t<U>, Result>) Result(U&& value)
      : data_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool ok() const { return data_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok(). Otherwise throws its error as Failure.
  T& value() & {
    require();
    return std::get<0>(data_);
  }
  const T& value() const& {
    require();
    return std::get<0>(data_);
  }
  T value() && {
    require();
    return std::get<0>(std::move(data_));
  }  // by value: `for (x : f().value())` must not dangle
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const Error& error() const& { return std::get<1>(data_); }
  Error&& error() && { return std::get<1>(std::move(data_)); }

 private:
  void require() const {
    if (!ok()) fail(std::get<1>(data_));
  }
  std::variant<T, Error> data_;
};

// Success without a value.
struct Done {};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Done) {}
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (error_) fail(*error_);
  }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

namespace internal {
template <typename T>
T take(Result<T>&& result) {
  return std::move(result).value();
}
inline void take(Result<void>&&) {}
}  // namespace internal

}  // namespace systole

#define TRY(...) SYSTOLE_TRY_NAMED(__COUNTER__, __VA_ARGS__)
#define SYSTOLE_TRY_NAMED(n, ...) SYSTOLE_TRY_AS(n, __VA_ARGS__)
#define SYSTOLE_TRY_AS(n, ...)                     \
  __extension__({                                  \
    auto try_##n = (__VA_ARGS__);                  \
    if (!try_##n.ok()) [[unlikely]]                \
      return std::move(try_##n).error();           \
    ::systole::internal::take(std::move(try_##n)); \
  })

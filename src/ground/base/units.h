#pragma once
// Units are types: Bytes / BytesPerSecond is Seconds, and there are no implicit conversions. Counts are 64-bit
// integers, which suffices per device and step; a job's total is a rate times a time. Rates and times are doubles.
// Printing shows the unit; GB is 10^9, GiB is 2^30.

#include <fmt/format.h>

#include <compare>
#include <concepts>
#include <cstdint>
#include <string>

namespace systole {

template <typename Tag, typename Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  template <typename N>
  requires(std::integral<N> ||
           (std::floating_point<N> && std::floating_point<Rep>)) constexpr explicit Quantity(N count)
      : count_(static_cast<Rep>(count)) {}

  constexpr Rep count() const { return count_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.count_ + b.count_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.count_ - b.count_); }
  template <typename N>
  requires std::is_arithmetic_v<N>
  friend constexpr Quantity operator*(Quantity a, N n) { return Quantity(static_cast<Rep>(a.count_ * n)); }
  template <typename N>
  requires std::is_arithmetic_v<N>
  friend constexpr Quantity operator*(N n, Quantity a) { return a * n; }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.count_) / static_cast<double>(b.count_);
  }

 private:
  Rep count_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, std::int64_t>;
using Seconds = Quantity<struct SecondsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopRate = Quantity<struct FlopRateTag, double>;  // flops per second
using Dollars = Quantity<struct DollarsTag, double>;
using DollarsPerHour = Quantity<struct DollarsPerHourTag, double>;
using DollarsPerChipHour = Quantity<struct DollarsPerChipHourTag, double>;
using DollarsPerGibMonth = Quantity<struct DollarsPerGibMonthTag, double>;
using FlopsPerDollar = Quantity<struct FlopsPerDollarTag, double>;
using Chips = Quantity<struct ChipsTag, double>;  // a machine may have a fraction of a chip

constexpr Seconds operator/(Bytes b, BytesPerSecond r) { return Seconds(static_cast<double>(b.count()) / r.count()); }
constexpr Seconds operator/(Flops f, FlopRate r) { return Seconds(static_cast<double>(f.count()) / r.count()); }
constexpr BytesPerSecond operator/(Bytes b, Seconds s) {
  return BytesPerSecond(static_cast<double>(b.count()) / s.count());
}
constexpr FlopRate operator/(Flops f, Seconds s) { return FlopRate(static_cast<double>(f.count()) / s.count()); }

constexpr Seconds kHour{3600.0};
constexpr Dollars operator*(DollarsPerHour p, Seconds s) { return Dollars(p.count() * s.count() / kHour.count()); }
constexpr Dollars operator*(Seconds s, DollarsPerHour p) { return p * s; }
// How long a budget lasts.
constexpr Seconds operator/(Dollars d, DollarsPerHour p) { return Seconds(d.count() / p.count() * kHour.count()); }
constexpr DollarsPerHour operator*(DollarsPerChipHour p, Chips c) { return DollarsPerHour(p.count() * c.count()); }
constexpr DollarsPerChipHour operator/(DollarsPerHour p, Chips c) {
  return DollarsPerChipHour(p.count() * (1 / c.count()));
}
constexpr FlopsPerDollar operator/(FlopRate r, DollarsPerChipHour p) {
  return FlopsPerDollar(r.count() * kHour.count() / p.count());
}

constexpr Bytes kKiB{std::int64_t{1} << 10}, kMiB{std::int64_t{1} << 20}, kGiB{std::int64_t{1} << 30};
constexpr Bytes kKB{1'000}, kMB{1'000'000}, kGB{1'000'000'000};

std::string to_string(Bytes bytes);           // "1,234 B", "12.3 MiB"
std::string to_string(Flops flops);           // "1.23 GFLOP"
std::string to_string(Seconds seconds);       // "12.3 ms", "1 h 02 min"
std::string to_string(FlopRate rate);         // "0.385 TFLOP/s"
std::string to_string(BytesPerSecond rate);   // "12.3 GB/s"
std::string to_string(Dollars dollars);       // "$1.23"
std::string with_commas(std::int64_t count);  // 1,234,567

// A typed id: ids of different things do not convert to each other.
template <typename Tag>
struct Id {
  std::int32_t index = -1;
  constexpr auto operator<=>(const Id&) const = default;
  constexpr bool valid() const { return index >= 0; }
};

using Rank = Id<struct RankTag>;

}  // namespace systole

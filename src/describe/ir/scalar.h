#pragma once
// The counting scalar of the reference facets: a double that counts every add, subtract, multiply, divide and
// elementary function in the thread's Tally. Tests compare the counts with the ops' `work`.

#include <cmath>
#include <cstdint>

namespace systole {

// Counted plus skipped operations equal the op's `work`. Skipped operations are those that data, not shape, makes
// needless: masked pairs in attention, ids outside the table.
struct Tally {
  std::int64_t flops = 0;
  std::int64_t transcendentals = 0;
  std::int64_t skipped_flops = 0;
  std::int64_t skipped_transcendentals = 0;
  std::int64_t untouched_bytes = 0;  // bytes of operands that a gather did not read
};

// The tally of this thread. Readers take differences.
inline Tally& tally() {
  thread_local Tally mine;
  return mine;
}

class Scalar {
 public:
  Scalar() = default;
  explicit Scalar(double value) : value_(value) {}
  double value() const { return value_; }

  friend Scalar operator+(Scalar a, Scalar b) { return counted(a.value_ + b.value_); }
  friend Scalar operator-(Scalar a, Scalar b) { return counted(a.value_ - b.value_); }
  friend Scalar operator*(Scalar a, Scalar b) { return counted(a.value_ * b.value_); }
  friend Scalar operator/(Scalar a, Scalar b) { return counted(a.value_ / b.value_); }
  Scalar& operator+=(Scalar other) { return *this = *this + other; }
  Scalar operator-() const { return counted(-value_); }
  // Comparisons count nothing.
  friend bool operator<(Scalar a, Scalar b) { return a.value_ < b.value_; }
  friend bool operator==(Scalar a, Scalar b) { return a.value_ == b.value_; }

  friend Scalar exp(Scalar a) { return elementary(std::exp(a.value_)); }
  friend Scalar log(Scalar a) { return elementary(std::log(a.value_)); }
  friend Scalar tanh(Scalar a) { return elementary(std::tanh(a.value_)); }
  friend Scalar erf(Scalar a) { return elementary(std::erf(a.value_)); }
  friend Scalar sqrt(Scalar a) { return elementary(std::sqrt(a.value_)); }
  friend Scalar rsqrt(Scalar a) { return elementary(1.0 / std::sqrt(a.value_)); }
  friend Scalar sin(Scalar a) { return elementary(std::sin(a.value_)); }
  friend Scalar cos(Scalar a) { return elementary(std::cos(a.value_)); }
  friend Scalar pow(Scalar a, Scalar b) { return elementary(std::pow(a.value_, b.value_)); }
  friend Scalar max(Scalar a, Scalar b) { return a.value_ < b.value_ || std::isnan(b.value_) ? b : a; }
  friend Scalar min(Scalar a, Scalar b) { return b.value_ < a.value_ || std::isnan(b.value_) ? b : a; }

 private:
  static Scalar counted(double value) {
    ++tally().flops;
    return Scalar(value);
  }
  static Scalar elementary(double value) {
    ++tally().transcendentals;
    return Scalar(value);
  }
  double value_ = 0;
};

}  // namespace systole

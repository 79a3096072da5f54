#pragma once
// Elementwise formulas in one type, written in usual notation:
//
//   const Term x(b, operand), u = tanh(0.5 * x);
//   return (x * (1 - u * u)).value();

#include "describe/stablehlo/builder.h"

namespace systole::stablehlo {

class Term {
 public:
  Term(Builder& b, Ssa value) : b_(&b), value_(std::move(value)) {}
  const Ssa& value() const { return value_; }
  Term number(double x) const { return {*b_, b_->constant(value_.type, x)}; }
  Term of(std::string_view op) const { return {*b_, b_->unary(op, value_)}; }
  Term with(std::string_view op, const Term& other) const { return {*b_, b_->binary(op, value_, other.value_)}; }

  friend Term operator+(const Term& a, const Term& c) { return a.with("add", c); }
  friend Term operator-(const Term& a, const Term& c) { return a.with("subtract", c); }
  friend Term operator*(const Term& a, const Term& c) { return a.with("multiply", c); }
  friend Term operator/(const Term& a, const Term& c) { return a.with("divide", c); }
  friend Term operator+(double a, const Term& c) { return c.number(a) + c; }
  friend Term operator-(double a, const Term& c) { return c.number(a) - c; }
  friend Term operator*(double a, const Term& c) { return c.number(a) * c; }

 private:
  Builder* b_;
  Ssa value_;
};

inline Term exp(const Term& x) { return x.of("exponential"); }
inline Term tanh(const Term& x) { return x.of("tanh"); }
inline Term erf(const Term& x) { return x.of("chlo.erf"); }
inline Term logistic(const Term& x) { return x.of("logistic"); }

// The type of sums and formulas: f64 for f64, else f32.
inline DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Converts as the op `cast`: reals to nearest even; to integers toward zero, saturating, NaN to 0; to bool: true where
// nonzero. StableHLO leaves values outside an integer's range to the device.
Ssa cast_to(Builder& b, const Ssa& x, DType dtype);

}  // namespace systole::stablehlo

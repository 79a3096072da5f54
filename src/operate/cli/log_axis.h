#pragma once
// An axis along which values grow by equal factors, for charts.

#include <string>
#include <vector>

namespace systole::cli {

// From least to most along `begin` to `end`.
struct LogAxis {
  double least, most, begin, end;
  double at(double value) const;
};

// With a margin on both sides. REQUIRES: values, all above 0.
LogAxis axis_over(const std::vector<double>& values, double begin, double end);

// 1, 2 and 5 times powers of ten that lie on the axis.
std::vector<double> ticks_of(const LogAxis& axis);

std::string short_number(double value);  // "20k", "1.5M"

}  // namespace systole::cli

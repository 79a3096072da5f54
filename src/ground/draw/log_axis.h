#pragma once
// A logarithmic axis for charts.

#include <string>
#include <vector>

namespace systole {

// Maps values from least to most to positions from `begin` to `end`.
struct LogAxis {
  double least, most, begin, end;
  double at(double value) const;
};

// An axis over the values with a margin on both sides. REQUIRES: values is not empty, all above 0.
LogAxis axis_over(const std::vector<double>& values, double begin, double end);

// The multiples 1, 2 and 5 of powers of ten on the axis.
std::vector<double> ticks_of(const LogAxis& axis);

std::string short_number(double value);  // "20k", "1.5M"

}  // namespace systole

#include "ground/draw/log_axis.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace systole {

double LogAxis::at(double value) const {
  if (most <= least) return (begin + end) / 2;
  return begin + std::log(value / least) / std::log(most / least) * (end - begin);
}

LogAxis axis_over(const std::vector<double>& values, double begin, double end) {
  const auto [least, most] = std::ranges::minmax(values);
  return {least / 1.15, most * 1.15, begin, end};
}

std::vector<double> ticks_of(const LogAxis& axis) {
  std::vector<double> ticks;
  for (double decade = std::pow(10, std::floor(std::log10(axis.least))); decade <= axis.most; decade *= 10)
    for (const double times : {1.0, 2.0, 5.0})
      if (decade * times >= axis.least && decade * times <= axis.most) ticks.push_back(decade * times);
  return ticks;
}

std::string short_number(double value) {
  if (value >= 1e9) return fmt::format("{:g}B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

}  // namespace systole

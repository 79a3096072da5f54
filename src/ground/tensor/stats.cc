#include "ground/tensor/stats.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace systole {

TensorStats stats_of(DType dtype, const std::byte* data, std::int64_t count) {
  TensorStats stats;
  stats.count = count;
  std::int64_t finite = 0;
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = load(dtype, data, i);
    if (!std::isfinite(v)) {
      ++(std::isnan(v) ? stats.nans : stats.infinities);
      if (stats.first_bad < 0) stats.first_bad = i;
      continue;
    }
    stats.low = finite == 0 ? v : std::min(stats.low, v);
    stats.high = finite == 0 ? v : std::max(stats.high, v);
    sum += v;
    squares += v * v;
    ++finite;
  }
  if (finite == 0) return stats;
  const auto n = static_cast<double>(finite);
  stats.mean = sum / n;
  stats.rms = std::sqrt(squares / n);
  double apart = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = load(dtype, data, i);
    if (std::isfinite(v)) apart += (v - stats.mean) * (v - stats.mean);
  }
  stats.deviation = std::sqrt(apart / n);
  return stats;
}

std::string range_text(const TensorStats& stats) {
  if (stats.count == 0) return "empty";
  if (stats.nans == stats.count) return "all NaN";
  std::string text =
      stats.bad() == stats.count ? "all infinite or NaN" : fmt::format("{:.4g} .. {:.4g}", stats.low, stats.high);
  if (stats.nans > 0) text += fmt::format(", {} NaN", stats.nans);
  if (stats.infinities > 0) text += fmt::format(", {} infinite", stats.infinities);
  return text;
}

std::string place_text(const Shape& shape, std::int64_t element) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    at[d] = element % shape[d];
    element /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(at, ", "));
}

}  // namespace systole

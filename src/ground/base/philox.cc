#include "ground/base/philox.h"

#include <cmath>
#include <numbers>

namespace systole {

std::pair<double, double> normal_pair(std::uint32_t bits0, std::uint32_t bits1) {
  const double u = (static_cast<double>(bits0) + 1.0) * 0x1p-32;  // in (0, 1]: its logarithm is finite
  const double radius = std::sqrt(-2.0 * std::log(u));
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(bits1) * 0x1p-32);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace systole

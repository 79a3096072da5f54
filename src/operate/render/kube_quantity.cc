#include "operate/render/kube_quantity.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace systole {

std::optional<double> quantity_of(std::string_view text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || !std::isfinite(value) || value < 0 || value > 1e18) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},
                                                            {"m", 1e-3},
                                                            {"k", 1e3},
                                                            {"M", 1e6},
                                                            {"G", 1e9},
                                                            {"T", 1e12},
                                                            {"P", 1e15},
                                                            {"Ki", 1024},
                                                            {"Mi", 1048576},
                                                            {"Gi", 1073741824.0},
                                                            {"Ti", 1099511627776.0},
                                                            {"Pi", 1125899906842624.0},
                                                            {"E", 1e18},
                                                            {"Ei", 1152921504606846976.0}};
  for (const auto& [name, times] : kUnits)
    if (unit == name && value * times < 9e18) return value * times;
  return std::nullopt;
}

}  // namespace systole

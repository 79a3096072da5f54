#include "ground/base/units.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>

namespace systole {
namespace {

// `value` in the largest unit of the list in which it is at least 1, with three significant digits.
std::string scaled(double value, double step, std::initializer_list<const char*> units) {
  const char* const* unit = units.begin();
  while (std::abs(value) >= step && unit + 1 != units.end()) {
    value /= step;
    ++unit;
  }
  const double size = std::abs(value);
  const int decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, *unit);
}

}  // namespace

std::string with_commas(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string to_string(Bytes bytes) {
  if (std::abs(bytes.count()) < 1024) return fmt::format("{} B", bytes.count());
  return scaled(static_cast<double>(bytes.count()), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string to_string(Flops flops) {
  return scaled(static_cast<double>(flops.count()), 1000,
                {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"});
}

std::string to_string(Seconds seconds) {
  const double s = seconds.count();
  if (s < 0) return "-" + to_string(Seconds(-s));
  if (s == 0) return "0 s";
  if (s < 1) return scaled(s * 1e9, 1000, {"ns", "us", "ms"});
  if (s < 100) return fmt::format("{:.{}f} s", s, s >= 10 ? 1 : 2);
  const auto whole = static_cast<std::int64_t>(std::llround(s));
  if (s < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (s < 100 * 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole / 3600 % 24);
}

std::string to_string(FlopRate rate) {
  return scaled(rate.count(), 1000, {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"});
}

std::string to_string(BytesPerSecond rate) {
  return scaled(rate.count(), 1000, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"});
}

// With cents below a hundred thousand dollars.
std::string to_string(Dollars dollars) {
  const double amount = std::abs(dollars.count());
  std::string text = fmt::format("{:.{}f}", amount, amount < 1e5 ? 2 : 0);
  for (std::size_t at = std::min(text.find('.'), text.size()); at > 3; at -= 3) text.insert(at - 3, ",");
  return (dollars.count() < 0 ? "-$" : "$") + text;
}

}  // namespace systole

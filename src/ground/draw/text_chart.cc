#include "ground/draw/text_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "ground/draw/log_axis.h"

namespace systole {
namespace {

constexpr std::size_t kColumns = 68, kRows = 12, kLabel = 8;

std::size_t place(double at, std::size_t count) {
  return static_cast<std::size_t>(std::clamp(std::lround(at), 0l, static_cast<long>(count) - 1));
}

// The ticks of the axis; if there are fewer than two, the smallest and the largest of `values`.
std::vector<double> ticks_or_ends(const LogAxis& axis, const std::vector<double>& values) {
  std::vector<double> ticks = ticks_of(axis);
  if (ticks.size() > 1) return ticks;
  const auto [least, most] = std::ranges::minmax(values);
  // With three digits.
  ticks = {std::stod(fmt::format("{:.3g}", least)), std::stod(fmt::format("{:.3g}", most))};
  if (ticks[0] == ticks[1]) ticks.pop_back();
  return ticks;
}

}  // namespace

std::string TextChart::text(std::string_view y_words, std::string_view x_words, std::vector<double> x_ticks) const {
  if (empty()) return "";
  std::vector<double> xs, ys;
  for (const Mark& mark : marks_) {
    xs.push_back(mark.x);
    ys.push_back(mark.y);
  }
  const LogAxis x = axis_over(xs, 0, kColumns - 1), y = axis_over(ys, kRows - 1, 0);
  std::vector<std::vector<std::string>> cells(kRows, std::vector<std::string>(kColumns, " "));
  for (const Mark& mark : marks_) cells[place(y.at(mark.y), kRows)][place(x.at(mark.x), kColumns)] = mark.mark;
  std::vector<std::string> labels(kRows);
  for (const double tick : ticks_or_ends(y, ys)) labels[place(y.at(tick), kRows)] = short_number(tick);
  std::string text = fmt::format("{:>{}} {}\n", "", kLabel, y_words);
  for (std::size_t row = 0; row < kRows; ++row) {
    std::string line = fmt::format("{:>{}} {}", labels[row], kLabel, labels[row].empty() ? "│" : "┤");
    for (const std::string& cell : cells[row]) line += cell;
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (x_ticks.empty()) x_ticks = ticks_or_ends(x, xs);
  std::vector<std::string> axis(kColumns, "─");
  std::string numbers(kColumns + kLabel, ' ');
  std::size_t free = 0;
  for (const double tick : x_ticks) {
    const std::size_t column = place(x.at(tick), kColumns);
    const std::string number = short_number(tick);
    const std::size_t from = column - std::min(column, number.size() / 2);
    axis[column] = "┬";
    if (from < free) continue;
    numbers.replace(from, number.size(), number);
    free = from + number.size() + 1;
  }
  text += fmt::format("{:>{}} └", "", kLabel);
  for (const std::string& cell : axis) text += cell;
  numbers = numbers.substr(0, numbers.find_last_not_of(' ') + 1);
  return text + fmt::format("\n{:>{}}{}  {}\n", "", kLabel + 2, numbers, x_words);
}

std::string stacked_bar(const std::vector<std::pair<double, std::string_view>>& parts, std::size_t columns) {
  std::string bar;
  double sum = 0;
  std::size_t drawn = 0;
  for (const auto& [share, glyph] : parts) {
    sum += share;
    const std::size_t until = place(sum * static_cast<double>(columns), columns + 1);
    for (; drawn < until; ++drawn) bar += glyph;
  }
  return bar;
}

std::string shortened(const std::string& text, std::size_t columns) {
  return text.size() <= columns ? text : text.substr(0, columns - 1) + "…";
}

}  // namespace systole

#include "ground/draw/braille_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace systole {
namespace {

struct Range {
  double low = 0, high = 0;
  // In 0 … steps - 1.
  int place(double value, int steps) const {
    if (high <= low) return 0;
    return std::clamp(static_cast<int>((value - low) / (high - low) * steps), 0, steps - 1);
  }
};

// A canvas of dots, rendered as Braille cells.
class Dots {
 public:
  Dots(int columns, int rows) : columns_(columns), cells_(static_cast<std::size_t>(columns * rows)) {}

  void set(int x, int y) {
    // Bits of U+2800: dots 1-3 and 7 down the left, 4-6 and 8 down the right (Unicode 15, Braille Patterns).
    constexpr unsigned char kBit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cells_[static_cast<std::size_t>(y / 4 * columns_ + x / 2)] |= kBit[y % 4][x % 2];
  }

  std::string row(int row) const {
    std::string text;
    int end = columns_;
    while (end > 0 && at(end - 1, row) == 0) --end;
    for (int c = 0; c < end; ++c) {
      const unsigned cell = at(c, row);
      if (cell == 0) {
        text += ' ';
        continue;
      }
      text += static_cast<char>(0xe2);
      text += static_cast<char>(0xa0 | (cell >> 6));
      text += static_cast<char>(0x80 | (cell & 0x3f));
    }
    return text;
  }

 private:
  unsigned at(int column, int row) const { return cells_[static_cast<std::size_t>(row * columns_ + column)]; }
  int columns_;
  std::vector<unsigned char> cells_;
};

std::vector<std::optional<double>> means(std::span<const Point> points, const Range& xs, int steps) {
  std::vector<double> sum(static_cast<std::size_t>(steps)), count(sum);
  for (const Point& p : points) {
    const auto at = static_cast<std::size_t>(xs.place(p.x, steps));
    sum[at] += p.y;
    count[at] += 1;
  }
  std::vector<std::optional<double>> result(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (count[i] > 0) result[i] = sum[i] / count[i];
  return result;
}

// Draws all dots between the two, without gaps in either direction.
void draw_line(Dots& dots, std::pair<int, int> from, std::pair<int, int> to) {
  const int steps = std::max({1, to.first - from.first, std::abs(to.second - from.second)});
  for (int i = 0; i <= steps; ++i) {
    dots.set(from.first + (to.first - from.first) * i / steps, from.second + (to.second - from.second) * i / steps);
  }
}

}  // namespace

std::string chart(std::span<const Point> points, int width, int height) {
  std::vector<Point> finite;
  for (const Point& p : points)
    if (std::isfinite(p.x) && std::isfinite(p.y)) finite.push_back(p);
  if (finite.size() < 2) return "";
  const Range xs{finite.front().x, finite.back().x};
  const auto [low, high] =
      std::minmax_element(finite.begin(), finite.end(), [](const Point& a, const Point& b) { return a.y < b.y; });
  const Range ys{low->y, high->y};
  const std::string top = fmt::format("{:.4g}", ys.high), bottom = fmt::format("{:.4g}", ys.low);
  const int margin = static_cast<int>(std::max(top.size(), bottom.size()));
  const int columns = std::max(4, width - margin - 2);
  Dots dots(columns, height);
  const auto curve = means(finite, xs, 2 * columns);
  std::optional<std::pair<int, int>> before;
  for (int x = 0; x < 2 * columns; ++x) {
    const std::optional<double>& y = curve[static_cast<std::size_t>(x)];
    if (!y) continue;
    const std::pair<int, int> here{x, 4 * height - 1 - ys.place(*y, 4 * height)};
    draw_line(dots, before.value_or(here), here);
    before = here;
  }
  std::string text;
  for (int r = 0; r < height; ++r) {
    const bool labelled = r == 0 || r == height - 1;
    text += fmt::format("{:>{}} {}{}\n",
                        r == 0     ? top
                        : labelled ? bottom
                                   : "",
                        margin, labelled ? "┤" : "│", dots.row(r));
  }
  const std::string first = fmt::format("{:g}", xs.low), last = fmt::format("{:g}", xs.high);
  text += fmt::format("{:{}}{}{:>{}}\n", "", margin + 2, first, last,
                      std::max(1, columns - static_cast<int>(first.size())));
  return text;
}

}  // namespace systole

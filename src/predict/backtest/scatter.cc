#include "predict/backtest/scatter.h"

#include "ground/base/counted.h"
#include "ground/draw/svg_picture.h"

#include <algorithm>
#include <cmath>

namespace systole::backtest {
namespace {

constexpr const char* kBand = "#dbe9d3";
constexpr double kWidth = 760, kHeight = 640, kLeft = 70, kRight = 190, kTop = 40, kBottom = 60;

struct Dot {
  double measured, predicted;
  std::string stack, id;
  bool flagged;
};

// The decades of all dots, the same on both axes.
struct Axes {
  double least = 0, most = 1;  // powers of ten

  double x(double seconds) const {
    return kLeft + (std::log10(seconds) - least) / (most - least) * (kWidth - kLeft - kRight);
  }
  double y(double seconds) const {
    return kHeight - kBottom - (std::log10(seconds) - least) / (most - least) * (kHeight - kTop - kBottom);
  }
};

std::vector<Dot> dots_of(const Scores& scores, std::string_view set) {
  std::vector<Dot> dots;
  for (const ScoredRow& row : scores.rows)
    if (row.time_error && (set.empty() || set == row.set))
      dots.push_back({*row.row->row.step_seconds, row.predicted->time.seconds, row.row->stack->name, row.row->row.id,
                      !row.defect.empty()});
  return dots;
}

Axes axes_of(const std::vector<Dot>& dots) {
  Axes axes{0, 1};
  if (dots.empty()) return axes;
  double least = dots.front().measured, most = least;
  for (const Dot& dot : dots) {
    least = std::min({least, dot.measured, dot.predicted});
    most = std::max({most, dot.measured, dot.predicted});
  }
  axes.least = std::floor(std::log10(least));
  axes.most = std::max(axes.least + 1, std::ceil(std::log10(most)));
  return axes;
}

void draw_grid(SvgPicture& picture, const Axes& axes) {
  const double begin = std::pow(10, axes.least), end = std::pow(10, axes.most);
  for (double decade = axes.least; decade <= axes.most + 0.5; ++decade) {
    const double at = std::pow(10, decade);
    picture.line(axes.x(at), axes.y(begin), axes.x(at), axes.y(end), "#ddd");
    picture.line(axes.x(begin), axes.y(at), axes.x(end), axes.y(at), "#ddd");
    picture.words(axes.x(at), axes.y(begin) + 18, fmt::format("{:g}", at), TextAnchor::middle);
    picture.words(axes.x(begin) - 8, axes.y(at) + 4, fmt::format("{:g}", at), TextAnchor::end);
  }
}

// The band from 15% below to 15% above the measured time, clipped to the picture.
void draw_band(SvgPicture& picture, const Axes& axes) {
  const double begin = std::pow(10, axes.least), end = std::pow(10, axes.most);
  const auto corner = [&](double x, double y) { return std::pair(axes.x(x), axes.y(y)); };
  picture.area({corner(begin, begin), corner(begin, begin * 1.15), corner(end / 1.15, end), corner(end, end),
                corner(end, end * 0.85), corner(begin / 0.85, begin)},
               kBand);
  picture.line(axes.x(begin), axes.y(begin), axes.x(end), axes.y(end), "#888");
}

void draw_legend(SvgPicture& picture, const std::vector<Dot>& dots, const std::vector<std::string>& stacks) {
  const double x = kWidth - kRight + 20;
  double y = kTop + 10;
  for (std::size_t i = 0; i < stacks.size(); ++i, y += 20) {
    const auto rows = std::ranges::count(dots, stacks[i], &Dot::stack);
    picture.dot(x, y, 4, colour_of(i));
    picture.words(x + 12, y + 4, fmt::format("{} ({})", stacks[i], rows));
  }
  picture.box(x - 5, y, 10, 10, kBand);
  picture.words(x + 12, y + 9, "within 15%");
  y += 26;
  picture.ring(x, y, 3, "#666");
  picture.words(x + 12, y + 4, "flagged");
}

}  // namespace

std::string scatter_svg(const Scores& scores, std::string_view set) {
  const std::vector<Dot> dots = dots_of(scores, set);
  const Axes axes = axes_of(dots);
  std::vector<std::string> stacks;
  for (const Dot& dot : dots)
    if (std::ranges::find(stacks, dot.stack) == stacks.end()) stacks.push_back(dot.stack);
  std::ranges::sort(stacks);
  SvgPicture picture(kWidth, kHeight);
  draw_band(picture, axes);
  draw_grid(picture, axes);
  for (const Dot& dot : dots) {
    const char* colour = colour_of(static_cast<std::size_t>(std::ranges::find(stacks, dot.stack) - stacks.begin()));
    const double x = axes.x(dot.measured), y = axes.y(dot.predicted);
    if (dot.flagged)
      picture.ring(x, y, 2, colour, dot.id);
    else
      picture.dot(x, y, 2, colour, dot.id, 0.6);
  }
  const double middle_x = (kLeft + kWidth - kRight) / 2, middle_y = (kTop + kHeight - kBottom) / 2;
  picture.words(kLeft, 24,
                fmt::format("Step times of {} published rows{}", with_commas(static_cast<std::int64_t>(dots.size())),
                            set.empty() ? "" : fmt::format(" of {}", set)),
                TextAnchor::start, 15);
  picture.words(middle_x, kHeight - 16, "measured, seconds", TextAnchor::middle);
  picture.words_upwards(20, middle_y, "predicted, seconds");
  draw_legend(picture, dots, stacks);
  return picture.text();
}

}  // namespace systole::backtest

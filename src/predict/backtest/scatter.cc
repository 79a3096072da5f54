#include "predict/backtest/scatter.h"

#include <algorithm>
#include <cmath>

namespace systole::backtest {
namespace {

// Okabe and Ito's colours, which people who see few colours tell apart; more stacks than these begin anew.
constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                    "#E69F00", "#56B4E9", "#000000", "#F0E442"};

constexpr double kWidth = 760, kHeight = 640, kLeft = 70, kRight = 190, kTop = 40, kBottom = 60;

struct Dot {
  double measured, predicted;
  std::string stack, id;
  bool flagged;
};

// Decades that hold all dots, the same on both axes.
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

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}
std::string words(double x, double y, const char* style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(text));
}

std::string grid(const Axes& axes) {
  std::string svg;
  const double begin = std::pow(10, axes.least), end = std::pow(10, axes.most);
  for (double decade = axes.least; decade <= axes.most + 0.5; ++decade) {
    const double at = std::pow(10, decade);
    constexpr const char* kThin = "stroke=\"#ddd\"";
    svg += line(axes.x(at), axes.y(begin), axes.x(at), axes.y(end), kThin);
    svg += line(axes.x(begin), axes.y(at), axes.x(end), axes.y(at), kThin);
    svg += words(axes.x(at), axes.y(begin) + 18, "text-anchor=\"middle\"", fmt::format("{:g}", at));
    svg += words(axes.x(begin) - 8, axes.y(at) + 4, "text-anchor=\"end\"", fmt::format("{:g}", at));
  }
  return svg;
}

// 15% above and below what was measured, within the picture.
std::string band(const Axes& axes) {
  const double begin = std::pow(10, axes.least), end = std::pow(10, axes.most);
  const auto corner = [&](double x, double y) { return fmt::format("{:.1f},{:.1f} ", axes.x(x), axes.y(y)); };
  const std::string corners = corner(begin, begin) + corner(begin, begin * 1.15) + corner(end / 1.15, end) +
                              corner(end, end) + corner(end, end * 0.85) + corner(begin / 0.85, begin);
  return fmt::format("<polygon points=\"{}\" fill=\"#dbe9d3\"/>\n", corners) +
         line(axes.x(begin), axes.y(begin), axes.x(end), axes.y(end), "stroke=\"#888\"");
}

std::string legend(const std::vector<Dot>& dots, const std::vector<std::string>& stacks) {
  std::string svg;
  const double x = kWidth - kRight + 20;
  double y = kTop + 10;
  for (std::size_t i = 0; i < stacks.size(); ++i, y += 20) {
    const auto rows = std::ranges::count(dots, stacks[i], &Dot::stack);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", x, y,
                       kColours[i % std::size(kColours)]);
    svg += words(x + 12, y + 4, "", fmt::format("{} ({})", stacks[i], rows));
  }
  svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"#dbe9d3\" stroke=\"#ccc\"/>\n",
                     x - 5, y);
  svg += words(x + 12, y + 9, "", "within 15%");
  y += 26;
  svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"none\" stroke=\"#666\"/>\n", x, y);
  svg += words(x + 12, y + 4, "", "flagged");
  return svg;
}

}  // namespace

std::string scatter_svg(const Scores& scores, std::string_view set) {
  const std::vector<Dot> dots = dots_of(scores, set);
  const Axes axes = axes_of(dots);
  std::vector<std::string> stacks;
  for (const Dot& dot : dots)
    if (std::ranges::find(stacks, dot.stack) == stacks.end()) stacks.push_back(dot.stack);
  std::ranges::sort(stacks);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"#fff\"/>\n",
      kWidth, kHeight);
  svg += band(axes) + grid(axes);
  for (const Dot& dot : dots) {
    const auto colour = static_cast<std::size_t>(std::ranges::find(stacks, dot.stack) - stacks.begin());
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" {}=\"{}\" {}><title>{}</title></circle>\n",
                       axes.x(dot.measured), axes.y(dot.predicted), dot.flagged ? "stroke" : "fill",
                       kColours[colour % std::size(kColours)], dot.flagged ? "fill=\"none\"" : "fill-opacity=\"0.6\"",
                       escaped(dot.id));
  }
  const double middle_x = (kLeft + kWidth - kRight) / 2, middle_y = (kTop + kHeight - kBottom) / 2;
  svg += words(kLeft, 24, "font-size=\"15\"",
               fmt::format("Step times of {} published rows{}", with_commas(static_cast<std::int64_t>(dots.size())),
                           set.empty() ? "" : fmt::format(" of {}", set)));
  svg += words(middle_x, kHeight - 16, "text-anchor=\"middle\"", "measured, seconds");
  svg +=
      words(20, middle_y, fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 20 {:.1f})\"", middle_y).c_str(),
            "predicted, seconds");
  return svg + legend(dots, stacks) + "</svg>\n";
}

}  // namespace systole::backtest

#include "describe/lengths/length_charts.h"

#include <algorithm>
#include <cmath>

#include "ground/base/counted.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/draw/log_axis.h"
#include "ground/draw/svg_picture.h"
#include "ground/draw/text_chart.h"

namespace systole {
namespace {

struct Range {
  std::int64_t first = 0, last = 0, count = 0;
};

// At most so many ranges that cover all lengths: of equal width, or each a factor longer than the one before.
std::vector<Range> ranges_of(const LengthHistogram& rows, int most) {
  const std::vector<LengthCount> counts = rows.counts();
  if (counts.empty()) return {};
  const std::int64_t shortest = counts.front().length, longest = counts.back().length;
  const double low = static_cast<double>(shortest), high = static_cast<double>(longest) + 1;
  std::vector<Range> ranges;
  std::int64_t first = shortest;
  for (int i = 1; i <= most; ++i) {
    const double part = static_cast<double>(i) / most;
    const double end = high > 20 * low ? low * std::pow(high / low, part) : low + (high - low) * part;
    const std::int64_t last = i == most ? longest : std::llround(end) - 1;
    if (last < first) continue;  // ranges of less than one length
    ranges.push_back({first, last});
    first = last + 1;
  }
  std::size_t at = 0;
  for (const auto& [length, count] : counts) {
    while (ranges[at].last < length) ++at;
    ranges[at].count += count;
  }
  return ranges;
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::string length_drawing(const LengthHistogram& rows) {
  constexpr int kRanges = 16;
  constexpr std::size_t kColumns = 48;
  const std::vector<Range> ranges = ranges_of(rows, kRanges);
  std::int64_t most = 0;
  std::vector<std::string> names;
  std::size_t wide = 0;
  for (const Range& range : ranges) {
    most = std::max(most, range.count);
    names.push_back(range.first == range.last ? with_commas(range.first)
                                              : with_commas(range.first) + " to " + with_commas(range.last));
    wide = std::max(wide, names.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const double share = static_cast<double>(ranges[i].count) / static_cast<double>(most);
    const std::string bar = stacked_bar({{share, "█"}}, kColumns);
    text += fmt::format("  {:>{}}  {:>6}  {}", names[i], wide, percent(ranges[i].count, rows.count()), bar);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string length_svg(const LengthHistogram& rows, std::span<const std::int64_t> edges, const std::string& title) {
  constexpr double kWidth = 860, kHeight = 420, kLeft = 70, kRight = 30, kTop = 60, kBottom = 56;
  const std::vector<Range> ranges = ranges_of(rows, 48);
  SvgPicture picture(kWidth, kHeight);
  picture.words(kLeft, 26, title, TextAnchor::start, 15);
  if (ranges.empty()) return picture.text();
  const double longest = static_cast<double>(std::max(ranges.back().last, edges.empty() ? 0 : edges.back()));
  const LogAxis x = axis_over({static_cast<double>(ranges.front().first), longest + 1}, kLeft, kWidth - kRight);
  const double floor = kHeight - kBottom;
  std::int64_t most = 0;
  for (const Range& range : ranges) most = std::max(most, range.count);
  for (const double tick : ticks_of(x)) {
    picture.line(x.at(tick), floor, x.at(tick), floor + 5, "#888");
    picture.words(x.at(tick), floor + 20, short_number(tick), TextAnchor::middle);
  }
  for (const Range& range : ranges) {
    const double left = x.at(static_cast<double>(range.first)), right = x.at(static_cast<double>(range.last) + 1);
    const double high = (floor - kTop) * static_cast<double>(range.count) / static_cast<double>(most);
    picture.box(left, floor - high, right - left, high, colour_of(0),
                fmt::format("{} to {}: {}, {}", range.first, range.last, counted(range.count, "row"),
                            percent(range.count, rows.count())));
  }
  picture.line(kLeft, floor, kWidth - kRight, floor, "#888");
  for (const std::int64_t edge : edges) {
    picture.line(x.at(static_cast<double>(edge) + 1), kTop - 8, x.at(static_cast<double>(edge) + 1), floor,
                 colour_of(1), true);
    picture.words(x.at(static_cast<double>(edge) + 1), kTop - 12, std::to_string(edge), TextAnchor::middle, 10);
  }
  picture.words((kLeft + kWidth - kRight) / 2, kHeight - 14, "tokens", TextAnchor::middle);
  picture.words(kLeft - 8, kTop + 4, percent(most, rows.count()), TextAnchor::end, 11);
  picture.words(kLeft - 8, floor, "0", TextAnchor::end, 11);
  return picture.text();
}

}  // namespace systole

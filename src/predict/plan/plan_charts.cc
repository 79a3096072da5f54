#include "predict/plan/plan_charts.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/draw/log_axis.h"
#include "ground/draw/svg_picture.h"
#include "predict/plan/share_words.h"

namespace systole {
namespace {

constexpr std::size_t kMostNamed = 24;
constexpr double kWidth = 860, kHeight = 520, kLeft = 80, kRight = 40, kTop = 50, kBottom = 60;

void draw_axes(SvgPicture& picture, const LogAxis& x, const std::vector<double>& x_ticks, const LogAxis& y,
               std::string_view x_words, std::string_view y_words) {
  for (const double tick : x_ticks) {
    picture.line(x.at(tick), y.begin, x.at(tick), y.end, "#ddd");
    picture.words(x.at(tick), y.begin + 18, short_number(tick), TextAnchor::middle);
  }
  for (const double tick : ticks_of(y)) {
    picture.line(x.begin, y.at(tick), x.end, y.at(tick), "#ddd");
    picture.words(x.begin - 8, y.at(tick) + 4, short_number(tick), TextAnchor::end);
  }
  picture.words((x.begin + x.end) / 2, kHeight - 16, x_words, TextAnchor::middle);
  picture.words_upwards(22, (y.begin + y.end) / 2, y_words);
}

// The choice, and every other option that has an estimate.
std::vector<const Estimated*> estimates_of(const HardwarePlan& plan) {
  std::vector<const Estimated*> all;
  if (plan.choice.chosen) all.push_back(&*plan.choice.chosen);
  for (const LostOption& lost : plan.choice.lost)
    if (lost.estimated) all.push_back(&*lost.estimated);
  return all;
}

std::string label_of(const HardwarePlan& plan, const Estimated& e) { return plan.request.offers[e.offer].offered.name; }

}  // namespace

std::string front_svg(const HardwarePlan& plan) {
  std::vector<const Estimated*> all = estimates_of(plan);
  std::erase_if(all, [](const Estimated* e) { return !e->dollars || !(*e->dollars > Dollars()); });
  if (all.empty()) return "";
  std::vector<double> hours, dollars;
  for (const Estimated* e : all) {
    hours.push_back(e->total / kHour);
    dollars.push_back(e->dollars->count());
  }
  const LogAxis x = axis_over(hours, kLeft, kWidth - kRight), y = axis_over(dollars, kHeight - kBottom, kTop);
  SvgPicture picture(kWidth, kHeight);
  picture.words(kLeft, 26, fmt::format("{}: time and dollars of {}", plan.workload.name, counted(all.size(), "option")),
                TextAnchor::start, 15);
  draw_axes(picture, x, ticks_of(x), y, "hours of training", "dollars");
  std::vector<std::pair<double, double>> front;
  for (const Estimated& e : plan.choice.front)
    if (*e.dollars > Dollars()) front.emplace_back(x.at(e.total / kHour), y.at(e.dollars->count()));
  if (front.size() > 1) picture.path(front, "#009E73");
  for (std::size_t i = all.size(); i-- > 0;) {
    const bool chosen = plan.choice.chosen && all[i] == &*plan.choice.chosen;
    const std::string title = fmt::format("{}: {}", label_of(plan, *all[i]), to_string(all[i]->candidate));
    const double at = x.at(hours[i]), high = y.at(dollars[i]);
    picture.dot(at, high, chosen ? 7 : 4, chosen ? "#D55E00" : "#0072B2", title);
    // The first of each offer is its best. If there are many offers, only those on the front are labelled.
    const bool best_of_offer =
        std::ranges::find(all, all[i]->offer, &Estimated::offer) - all.begin() == static_cast<std::ptrdiff_t>(i);
    const bool named =
        best_of_offer && (all.size() <= kMostNamed || std::ranges::find(plan.choice.front, all[i]->offer,
                                                                        &Estimated::offer) != plan.choice.front.end());
    const bool right = at < kWidth * 0.6;
    if (named)
      picture.words(at + (right ? 10 : -10), high - 8, label_of(plan, *all[i]) + (chosen ? " (the choice)" : ""),
                    right ? TextAnchor::start : TextAnchor::end, 11);
  }
  return picture.text();
}

std::string time_svg(const HardwarePlan& plan) {
  constexpr std::size_t kMostBars = 8;
  constexpr double kBar = 26, kStep = 58, kBars = 90, kScaleTo = 820;
  std::vector<const Estimated*> all = estimates_of(plan);
  if (all.size() > kMostBars) all.resize(kMostBars);
  if (all.empty()) return "";
  double longest = 0;
  for (const Estimated* e : all) longest = std::max(longest, e->step.seconds);
  const double height = kBars + kStep * static_cast<double>(all.size()) + 90;
  SvgPicture picture(kWidth, height);
  picture.words(30, 26, fmt::format("{}: where the time of a step goes", plan.workload.name), TextAnchor::start, 15);
  std::vector<StepShare> shown;
  double y = 56;
  for (const Estimated* e : all) {
    picture.words(
        30, y,
        fmt::format("{}, {}: {}", label_of(plan, *e), to_string(e->candidate), to_string(Seconds(e->step.seconds))),
        TextAnchor::start, 11);
    double at = 30;
    for (int s = 0; s < kNumStepShares; ++s) {
      const auto share = static_cast<StepShare>(s);
      const double wide = e->step[share] / longest * (kScaleTo - 30);
      if (wide <= 0) continue;
      if (wide >= 0.5 && std::ranges::find(shown, share) == shown.end()) shown.push_back(share);
      picture.box(at, y + 6, wide, kBar, share_colour(share),
                  fmt::format("{}: {}", words_of(share), to_string(Seconds(e->step[share]))));
      at += wide;
    }
    y += kStep;
  }
  std::ranges::sort(shown);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const double left = 30 + 270 * static_cast<double>(i % 3), top = y + 18 * static_cast<double>(i / 3);
    picture.box(left, top - 10, 12, 12, share_colour(shown[i]));
    picture.words(left + 18, top, words_of(shown[i]));
  }
  return picture.text();
}

std::string scaling_svg(const ScaledPlan& plan) {
  std::vector<double> chips, speeds;
  for (const ScaleCurve& curve : plan.curves)
    for (const ScalePoint& point : curve.points)
      if (point.best) {
        chips.push_back(static_cast<double>(point.chips));
        speeds.push_back(point.tokens_per_second);
      }
  if (chips.empty()) return "";
  const LogAxis x = axis_over(chips, kLeft, kWidth - 160), y = axis_over(speeds, kHeight - kBottom, kTop);
  SvgPicture picture(kWidth, kHeight);
  picture.words(
      kLeft, 26,
      fmt::format("{}: tokens a second by chips; dashed: without loss; ring: where to stop", plan.workload.name),
      TextAnchor::start, 15);
  std::vector<double> sizes = chips;
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  draw_axes(picture, x, sizes, y, "chips", "tokens a second");
  for (std::size_t c = 0; c < plan.curves.size(); ++c) {
    const ScaleCurve& curve = plan.curves[c];
    std::vector<std::pair<double, double>> points;
    const ScalePoint* first = nullptr;
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      const ScalePoint& point = curve.points[i];
      if (!point.best) continue;
      if (first == nullptr) first = &point;
      points.emplace_back(x.at(static_cast<double>(point.chips)), y.at(point.tokens_per_second));
      if (curve.stop == i) picture.dot(points.back().first, points.back().second, 9, "#bbb");
    }
    if (first == nullptr) continue;
    const double most = std::min(x.most, static_cast<double>(first->chips) * y.most / first->tokens_per_second);
    picture.line(points.front().first, points.front().second, x.at(most),
                 y.at(first->tokens_per_second * most / static_cast<double>(first->chips)), colour_of(c), true);
    picture.path(points, colour_of(c));
    for (const auto& [at, high] : points) picture.dot(at, high, 4, colour_of(c));
    const double key = kTop + 20 + 20 * static_cast<double>(c);
    picture.dot(kWidth - 140, key, 5, colour_of(c));
    picture.words(kWidth - 128, key + 4, curve.hardware);
  }
  return picture.text();
}

}  // namespace systole

#include "predict/plan/plan_drawings.h"

#include <algorithm>

#include "ground/draw/text_chart.h"

namespace systole {
namespace {

constexpr std::size_t kBars = 6, kBarColumns = 46, kNameColumns = 34;

// Kinds of time: compute, memory-bound ops and launches, exposed messages, and the rest.
struct Kind {
  std::string_view glyph, words;
};
constexpr Kind kKinds[] = {{"█", "products and attention"},
                           {"▓", "memory-bound ops and launches"},
                           {"▒", "exposed communication"},
                           {"░", "bubble"},
                           {"·", "update, once a step"}};

std::size_t kind_of(StepShare share) {
  switch (share) {
    case StepShare::products:
    case StepShare::attention: return 0;
    case StepShare::movement:
    case StepShare::host: return 1;
    case StepShare::bubble: return 3;
    case StepShare::update:
    case StepShare::fixed: return 4;
    default: return 2;
  }
}

std::string bar_of(const StepTime& step, double longest) {
  std::vector<std::pair<double, std::string_view>> parts;
  for (const Kind& kind : kKinds) parts.emplace_back(0, kind.glyph);
  for (int s = 0; s < kNumStepShares; ++s) {
    const auto share = static_cast<StepShare>(s);
    parts[kind_of(share)].first += step[share] / longest;
  }
  return stacked_bar(parts, kBarColumns);
}

}  // namespace

std::string front_drawing(const HardwarePlan& plan) {
  std::vector<std::pair<const Estimated*, std::string_view>> marks;
  const auto add = [&](const Estimated& e, std::string_view mark) {
    if (e.dollars && *e.dollars > Dollars()) marks.emplace_back(&e, mark);
  };
  for (const LostOption& lost : plan.choice.lost)
    if (lost.estimated && !lost.layout && !lost.refused) add(*lost.estimated, "·");
  for (const Estimated& e : plan.choice.front) add(e, "o");
  if (plan.choice.chosen) add(*plan.choice.chosen, "●");
  if (marks.size() < 4) return "";  // the choice or another option is on the front
  const bool hours = std::ranges::any_of(marks, [](const auto& m) { return m.first->total > kHour; });
  TextChart chart;
  for (const auto& [e, mark] : marks)
    chart.mark(hours ? e->total / kHour : e->total.count(), e->dollars->count(), mark);
  return "\n" + chart.text("dollars (● the choice, o nothing shown is both faster and cheaper, · others)",
                           hours ? "hours" : "seconds");
}

std::string time_drawing(const HardwarePlan& plan) {
  std::vector<std::pair<std::string, const Estimated*>> bars;
  if (plan.choice.chosen) bars.emplace_back("the choice", &*plan.choice.chosen);
  for (const LostOption& lost : plan.choice.lost)
    if (lost.estimated && !lost.refused && bars.size() < kBars)
      bars.emplace_back(option_name(plan, lost), &*lost.estimated);
  if (bars.size() < 2) return "";
  double longest = 0;
  for (const auto& [name, e] : bars) longest = std::max(longest, e->step.seconds);
  std::string text = "\n";
  for (const auto& [name, e] : bars)
    text += fmt::format("{:<{}}  {} {}\n", shortened(name, kNameColumns), kNameColumns, bar_of(e->step, longest),
                        to_string(Seconds(e->step.seconds)));
  text += "a step:";
  for (const Kind& kind : kKinds)
    text += fmt::format(" {} {}{}", kind.glyph, kind.words, &kind == std::end(kKinds) - 1 ? "" : ",");
  return text + "\n";
}

std::string scaling_drawing(const ScaledPlan& plan) {
  TextChart chart;
  std::vector<double> sizes;
  std::string words = "tokens/s (· without loss";
  std::size_t points = 0;
  for (std::size_t c = 0; c < plan.curves.size(); ++c) {
    const ScaleCurve& curve = plan.curves[c];
    const auto first = std::ranges::find_if(curve.points, [](const ScalePoint& p) { return p.best.has_value(); });
    if (first == curve.points.end()) continue;
    for (const ScalePoint& point : curve.points)
      if (point.best)
        chart.mark(static_cast<double>(point.chips),
                   first->tokens_per_second * static_cast<double>(point.chips) / static_cast<double>(first->chips),
                   "·");
    words += fmt::format(", {} {}", static_cast<char>('a' + c % 26), curve.hardware);
  }
  for (std::size_t c = 0; c < plan.curves.size(); ++c)
    for (std::size_t i = 0; i < plan.curves[c].points.size(); ++i) {
      const ScalePoint& point = plan.curves[c].points[i];
      if (!point.best) continue;
      const char letter = static_cast<char>((plan.curves[c].stop == i ? 'A' : 'a') + c % 26);
      chart.mark(static_cast<double>(point.chips), point.tokens_per_second, std::string(1, letter));
      sizes.push_back(static_cast<double>(point.chips));
      ++points;
    }
  if (points < 2) return "";
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  return chart.text(words + "; a capital: stop here)", "chips", sizes) + "\n";
}

}  // namespace systole

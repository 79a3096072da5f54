#include "predict/prove/published.h"

#include <algorithm>
#include <optional>

namespace systole::prove {

extern const char* const kPublishedJson;  // generated from data/xla/published.json

namespace {

Result<Seconds> seconds_of(const Node& node, const char* key) { return Seconds(TRY(TRY(node.get(key))->as_double())); }

Result<std::string> text_of(const Node& node, const char* key) { return TRY(node.get(key))->as_string(); }

Result<PublishedStep> step_of(const Node& row, const Node& scheduled) {
  PublishedStep step;
  step.name = TRY(text_of(row, "published"));
  step.source = TRY(text_of(row, "source"));
  step.slice = TRY(text_of(row, "on"));
  step.measured = TRY(seconds_of(row, "step_s"));
  step.module = TRY(text_of(scheduled, "module"));
  step.compiler = TRY(text_of(scheduled, "compiler"));
  step.date = TRY(text_of(scheduled, "date"));
  step.scheduled.compute = TRY(seconds_of(scheduled, "compute_s"));
  step.scheduled.kernels = TRY(seconds_of(scheduled, "kernels_s"));
  step.scheduled.collectives = TRY(seconds_of(scheduled, "collectives_s"));
  step.scheduled.exposed = TRY(seconds_of(scheduled, "exposed_s"));
  step.scheduled.copies = TRY(seconds_of(scheduled, "copies_s"));
  if (!(step.measured > Seconds()))
    return error(ErrorKind::invalid, "'{}' was measured with {}", step.name, to_string(step.measured));
  return step;
}

struct KnownRatio {
  std::size_t rows = 0;
  double lowest = 0, median = 0, highest = 0;
};

// For steps on `chip`; "": on all chips. Nothing: no row.
std::optional<KnownRatio> known_ratio(const std::vector<PublishedStep>& steps, std::string_view chip) {
  std::vector<double> ratios;
  for (const PublishedStep& step : steps) {
    if (chip.empty() || step.chip() == chip) ratios.push_back(step.ratio());
  }
  if (ratios.empty()) return std::nullopt;
  std::ranges::sort(ratios);
  const std::size_t middle = ratios.size() / 2;
  const double median = ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
  return KnownRatio{ratios.size(), ratios.front(), median, ratios.back()};
}

std::string span_of(const KnownRatio& known) {
  return known.lowest == known.highest ? fmt::format("{:.2f}", known.lowest)
                                       : fmt::format("{:.2f} to {:.2f}", known.lowest, known.highest);
}

}  // namespace

Result<std::vector<PublishedStep>> read_published(std::string_view json) {
  std::vector<PublishedStep> steps;
  const Node rows = TRY(parse_json(std::string(json), "data/xla/published.json"));
  for (const Node& row : rows.items()) {
    if (const Node* scheduled = row.find("scheduled")) steps.push_back(TRY(step_of(row, *scheduled)));
  }
  return steps;
}

const std::vector<PublishedStep>& published_steps() {
  static const std::vector<PublishedStep> steps = read_published(kPublishedJson).value();
  return steps;
}

Node known_ratio_node(const std::vector<PublishedStep>& steps, std::string_view chip) {
  const auto node_of = [](const KnownRatio& known) {
    return Node::map({{"rows", static_cast<std::int64_t>(known.rows)},
                      {"lowest", known.lowest},
                      {"median", known.median},
                      {"highest", known.highest}});
  };
  const std::optional<KnownRatio> all = known_ratio(steps, ""), same = known_ratio(steps, chip);
  if (!all) return Node::map({});
  Node node = node_of(*all);
  if (same) node.set("same_chip", node_of(*same));
  return node;
}

std::string known_error(const std::vector<PublishedStep>& steps, std::string_view chip) {
  const std::optional<KnownRatio> all = known_ratio(steps, "");
  if (!all) return "it was never held beside a published step";
  std::string text = fmt::format("of {} published steps it makes {} times what was measured, {:.2f} at the median",
                                 all->rows, span_of(*all), all->median);
  if (const std::optional<KnownRatio> same = known_ratio(steps, chip))
    return text + fmt::format("; of {} on {} {}", same->rows, chip, span_of(*same));
  return text + fmt::format("; none of them is on {}", chip);
}

}  // namespace systole::prove

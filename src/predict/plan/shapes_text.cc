#include "predict/plan/shapes_text.h"

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"

namespace systole {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

}  // namespace

std::string shapes_text(std::span<const PlannedShape> shapes) {
  if (shapes.empty()) return "";
  const std::vector<double> shares = step_shares(shapes);
  std::vector<std::vector<std::string>> rows;
  std::int64_t steps = 0, tokens = 0, positions = 0;
  Seconds time;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const PlannedShape& shape = shapes[s];
    const bool known = shape.epoch_steps > 0;
    const std::int64_t of_epoch = shape.epoch_steps * shape.rows * shape.length;
    steps += shape.epoch_steps;
    tokens += shape.epoch_tokens;
    positions += of_epoch;
    time += shape.step * static_cast<double>(shape.epoch_steps);
    rows.push_back({with_commas(shape.length), with_commas(shape.rows), known ? with_commas(shape.epoch_steps) : "",
                    known ? percent(shares[s]) : "",
                    known ? percent(1 - static_cast<double>(shape.epoch_tokens) / static_cast<double>(of_epoch)) : "",
                    shape.step > Seconds() ? to_string(shape.step) : ""});
  }
  std::string text = table({"rows of>", "rows a step>", "steps an epoch>", "share>", "padding>", "step>"}, rows);
  text += fmt::format("{} compiled, one arena", counted(std::ssize(shapes), "shape"));
  if (steps == 0) return text + "; the shares of steps follow from the data: systole data build\n";
  text += fmt::format("; an epoch is {}, {} of whose positions are empty", counted(steps, "step"),
                      percent(1 - static_cast<double>(tokens) / static_cast<double>(positions)));
  if (time > Seconds())
    text += fmt::format("; {} tokens a second, padding not counted",
                        with_commas(std::llround(static_cast<double>(tokens) / time.count())));
  return text + "\n";
}

}  // namespace systole

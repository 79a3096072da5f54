#include "predict/plan/plan_text.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"
#include "predict/plan/feed_plan.h"
#include "predict/plan/shapes_text.h"

namespace systole {
namespace {

std::string bar(double share) {
  return std::string(static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * 30 + 0.5), '#');
}

std::string memory_text(const PlannedMemory& memory) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [owner, bytes] : memory.by_owner) {
    rows.push_back({owner, with_commas(bytes.count()), to_string(bytes), bar(bytes / memory.total())});
  }
  rows.push_back({"total", with_commas(memory.total().count()), to_string(memory.total()), ""});
  return table({"memory", "bytes>", ">", ""}, rows);
}

std::string time_text(const PlannedTime& time) {
  if (time.unknown) return "time of a step: unknown: " + *time.unknown + "\n";
  Seconds sum;
  for (const auto& [kind, seconds] : time.compute_by_kind) sum += seconds;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [kind, seconds] : time.compute_by_kind)
    if (seconds >= sum * 0.0005)  // less is printed as 0%
      rows.push_back({kind, to_string(seconds), fmt::format("{:.0f}%", 100 * (seconds / sum)), bar(seconds / sum)});
  if (const Seconds wait = time.step[Category::data_wait]; wait > Seconds())
    rows.push_back({"waiting for rows", to_string(wait), "", ""});
  rows.push_back({"step", to_string(time.step.total()), "", ""});
  return table({"time of a step", ">", ">", ""}, rows);
}

// The time left after `done` steps, including the evaluation at the end.
std::string finish_text(const Plan& plan, std::int64_t done) {
  const PlannedTime& time = plan.time;
  const Seconds evaluation = time.run[Category::evaluation];
  const std::string of_it = evaluation > Seconds() ? fmt::format(", evaluation {} of it", to_string(evaluation)) : "";
  const std::string all = counted(std::llround(time.steps), "step");
  if (done == 0) return fmt::format("{}, {} to finish{}\n", all, to_string(time.run.total()), of_it);
  const double left = std::max(0.0, time.steps - static_cast<double>(done)), share = left / std::max(1.0, time.steps);
  const auto once = [&](const Interval& each, Seconds whole) {  // counts events in the whole run, as make_plan does
    const double often = each.steps > 0          ? time.steps / static_cast<double>(each.steps)
                         : each.time > Seconds() ? time.step.total() * time.steps / each.time
                                                 : 0;
    return whole * ((often * share + 1) / (often + 1));
  };
  Seconds rest = time.step.total() * left;
  if (left > 0) rest += once(plan.workload.train.evaluate, evaluation);
  if (left > 0) rest += once(plan.workload.checkpoint.every, time.run[Category::snapshot]);
  return fmt::format("{}, {} of them done; {} left, {} to finish\n", all, with_commas(done),
                     with_commas(std::llround(left)), to_string(rest));
}

}  // namespace

std::string plan_text(const Plan& plan, std::int64_t done) {
  const bool fits = plan.memory.limit.count() == 0 || plan.memory.total() <= plan.memory.limit;
  std::string text =
      fmt::format("{}: {} ({} trained) on {}\n", plan.workload.name, counted(plan.program.parameters, "parameter"),
                  with_commas(plan.program.trainable), plan.target.name);
  text += fmt::format("{}; {} model FLOPs a step, {} executed, {} moved{}\n", plan.strategy,
                      with_commas(plan.program.model_flops.count()), with_commas(plan.program.executed_flops.count()),
                      to_string(plan.program.moved),
                      plan.program.sent > Bytes() ? fmt::format(", {} sent", to_string(plan.program.sent)) : "");
  text += fmt::format("{}: {} of {}\n\n", fits ? "fits" : "does not fit", to_string(plan.memory.total()),
                      to_string(plan.memory.limit));
  text += memory_text(plan.memory) + "\n" + time_text(plan.time) + "\n";
  if (!plan.shapes.empty()) text += shapes_text(plan.shapes) + "\n";
  if (plan.feed) text += feed_text(*plan.feed, plan.time.step.total());
  if (plan.time.unknown)
    return text + (plan.time.steps > 0 ? counted(std::llround(plan.time.steps), "step") + "\n" : "") +
           fmt::format("program {}\n", plan.program.hash);
  text += finish_text(plan, done);
  if (plan.model_utilisation > 0)
    text += fmt::format("{:.0f}% of {} matmul rate\n", 100 * plan.model_utilisation,
                        plan.target.calibrated ? "this machine's measured" : "the catalog's");
  text += fmt::format("times are {}: {} of {}\n",
                      plan.target.calibrated ? "calibrated" : "UNCALIBRATED, of another machine of this kind",
                      plan.target.catalog_entry, plan.target.catalog_date);
  return text + fmt::format("program {}\n", plan.program.hash);
}

}  // namespace systole

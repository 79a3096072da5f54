#include "operate/run/held_plan.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "operate/run/xla_machine.h"
#include "predict/plan/chosen_plan.h"

namespace systole {
namespace {

// "[16, 32, 64]"; "one": rows have no buckets.
std::string lengths_of(const Plan& plan) {
  std::vector<std::int64_t> lengths;
  for (const PlannedShape& shape : plan.shapes) lengths.push_back(shape.length);
  return lengths.empty() ? "one" : fmt::format("[{}]", fmt::join(lengths, ", "));
}

std::vector<std::string> changes(const Plan& planned, const Plan& now) {
  std::vector<std::string> changed;
  const auto add = [&](const std::string& what, const std::string& was, const std::string& is) {
    if (was != is)
      changed.push_back(fmt::format("{} was {}, is {}", what, was.empty() ? "none" : was, is.empty() ? "none" : is));
  };
  add("systole", planned.made_by, now.made_by);
  add("the target", planned.target.name, now.target.name);
  for (const auto& [name, value] : planned.target.facts) {
    const auto found = now.target.facts.find(name);
    add(name, value, found == now.target.facts.end() ? "" : found->second);
  }
  for (const auto& [name, value] : now.target.facts)
    if (!planned.target.facts.contains(name)) add(name, "", value);
  const std::string were = lengths_of(planned), are = lengths_of(now);
  if (were != are) changed.push_back(fmt::format("the lengths of rows were {}, are {}", were, are));
  return changed;
}

// Whether it is for offered hardware.
bool planned_elsewhere(const Plan& plan) {
  const auto kind = plan.target.facts.find("kind");
  return kind != plan.target.facts.end() && kind->second == kPlannedElsewhere;
}

}  // namespace

Result<Plan> plan_in(const std::string& path) {
  Result<Plan> plan = read_plan(TRY(read_text_file(path)), path);
  if (plan.ok() || !plan.error().hint.empty()) return plan;
  Error why = plan.error();
  why.kind = ErrorKind::invalid;  // the file is not a plan, rather than a damaged one
  return std::move(why).hinted("a plan is what `systole plan WORKLOAD --out plan.json` writes");
}

std::vector<std::string> targets_of(const Plan& plan) {
  std::vector<std::string> names;
  const auto fact = plan.target.facts.find(kPlannedRunBy);
  if (fact == plan.target.facts.end()) return names;
  const std::string& text = fact->second;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    names.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return names;
}

Status lay_over_plan(std::span<const std::string> sets, Workload& workload) {
  for (const std::string& set : sets) {
    if (set.starts_with("train.seed=") || set.starts_with("objective.budget=")) continue;
    return error(ErrorKind::invalid,
                 "--set {} beside --plan: the plan says all but the seed (train.seed) and the budget "
                 "(objective.budget)",
                 set)
        .hinted("plan with it: systole plan JOB.yaml --set ... --out plan.json");
  }
  if (!sets.empty()) workload = TRY(workload_from(to_node(workload), "--set", {.sets = {sets.begin(), sets.end()}}));
  return {};
}

Status room_for(const Plan& plan, Bytes of_node, const std::string& backend) {
  if (!planned_elsewhere(plan) || (is_xla(backend) && backend != "xla-cpu")) return {};
  const double all = static_cast<double>(plan.memory.arena.count()) * static_cast<double>(plan.program.devices);
  if (all <= static_cast<double>(of_node.count())) return {};
  return error(ErrorKind::does_not_fit, "the plan is for {} of {}, {} each; all that this machine has is {}",
               counted(plan.program.devices, "device"), plan.target.name, to_string(plan.memory.arena),
               to_string(of_node))
      .hinted("on that hardware; or plan for what is here: systole plan without --on");
}

Result<std::optional<std::string>> hold_to_plan(const Plan& planned, const Plan& now) {
  if (planned.program.hash == now.program.hash) return std::optional<std::string>();
  if (planned_elsewhere(planned) && planned.program.model_flops == now.program.model_flops)
    return std::optional(fmt::format("planned for {}; here it runs on {}, whose times and memory are its own",
                                     planned.target.name, now.target.name));
  const std::vector<std::string> changed = changes(planned, now);
  return error(ErrorKind::invalid,
               "--plan: the Program that is made here ({}) is not the one that was planned ({}): {}", now.program.hash,
               planned.program.hash,
               changed.empty() ? "its workload was edited, or is read in another way now"
                               : fmt::format("{}", fmt::join(changed, "; ")))
      .hinted("plan again here: systole plan JOB.yaml --out plan.json");
}

}  // namespace systole

// The options of `systole plan --on`: parsing and printing.

#include <fmt/ranges.h>

#include <algorithm>

#include "ground/base/nearest.h"
#include "ground/base/number_from.h"
#include "ground/base/quantity.h"
#include "operate/cli/plan_on.h"

namespace systole::cli {
namespace {

constexpr const char* kObjectives[] = {"fastest", "cheapest", "per-token", "front"};
constexpr std::int64_t kLayoutsOfAll = 100;

Result<Dollars> parse_dollars(std::string_view text) {
  if (text.starts_with('$')) text.remove_prefix(1);
  if (const auto amount = number_from<double>(text); amount && *amount >= 0 && *amount < 1e15) return Dollars(*amount);
  if (const Result<std::int64_t> count = parse_count(text); count.ok()) return Dollars(static_cast<double>(*count));
  return error(ErrorKind::invalid, "--budget: '{}' is no number of dollars", text).hinted("1M, 250k, 99.50");
}

Result<Seconds> parse_deadline(const std::string& text) {
  Result<Seconds> time = parse_seconds(text);
  if (time.ok() && *time > Seconds()) return time;
  return error(ErrorKind::invalid, "--deadline: '{}' is no length of time", text).hinted("30d, 12h, 1h30min");
}

Result<StackProfile> stack_named(const std::string& name) {
  if (name.empty()) return stack_of(builtin_stacks(), "");
  std::vector<std::string> names;
  for (const StackProfile& stack : builtin_stacks()) {
    if (stack.name == name) return stack;
    names.push_back(stack.name);
  }
  return error(ErrorKind::invalid, "--stack: no profile is called '{}'", name).hinted(nearest_hint(name, names));
}

// Dtypes of matrix products that may be chosen without a change of the workload.
Result<std::vector<ProductType>> product_types(const std::vector<std::string>& names, const Workload& workload) {
  const bool serves = workload.kind == Workload::Kind::serve;
  const bool wide = (serves ? workload.serve.compute : workload.train.precision.compute) == DType::f32;
  const std::vector<ProductType> allowed = wide ? std::vector{ProductType::f32, ProductType::tf32}
                                                : std::vector{ProductType::bf16, ProductType::fp8, ProductType::fp4};
  if (names.empty()) return std::vector{allowed.front()};
  std::vector<std::string> words;
  for (const ProductType type : allowed) words.emplace_back(name_of(type));
  std::vector<ProductType> types;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(words, name);
    if (found == words.end())
      return error(ErrorKind::invalid, "--precision {}: the workload computes in {}, whose products are done in {}",
                   name, wide ? "f32" : "16 bits", fmt::join(words, ", "))
          .hinted(serves                            ? "--set serve.compute=f32 or bf16"
                  : name == "f32" || name == "tf32" ? "--set train.precision=f32"
                  : wide                            ? "--set train.precision=bf16"
                                                    : nearest_hint(name, words));
    const ProductType type = allowed[static_cast<std::size_t>(found - words.begin())];
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  return types;
}

}  // namespace

NamedOn named_on(const std::vector<std::string>& on) {
  NamedOn named;
  for (const std::string& several : on)
    for (std::size_t from = 0; from <= several.size();) {
      const std::size_t end = std::min(several.find(',', from), several.size());
      const std::string one = several.substr(from, end - from);
      if (const JobTargetRow* target = find_job_target_row(one))
        named.targets.push_back(target);
      else
        named.hardware.push_back(one);
      from = end + 1;
    }
  return named;
}

Result<OfferRules> offer_rules(const PlanOnOptions& options, const Workload& workload) {
  const StackProfile stack = TRY(stack_named(options.stack));
  OfferRules rules;
  rules.regions = options.regions;
  rules.zones = options.zones;
  rules.chips_at_most = options.chips_at_most;
  rules.products = TRY(product_types(options.precision, workload));
  rules.stack = stack;
  rules.in_f16 = workload.train.precision.compute == DType::f16;
  return rules;
}

Result<ChoiceRequest> choice_request(const PlanOnOptions& options, const Workload& workload) {
  ChoiceRequest request;
  if (workload.objective.budget) request.budget = workload.objective.budget;
  for (int o = 0; o < 4; ++o)
    if (options.objective == kObjectives[o]) request.wanted = static_cast<OfferRanking>(o);
  if (!options.deadline.empty()) request.deadline = TRY(parse_deadline(options.deadline));
  if (!options.budget.empty()) request.budget = TRY(parse_dollars(options.budget));
  request.best = static_cast<std::size_t>(options.all ? std::max(options.best, kLayoutsOfAll) : options.best);
  if (options.all || request.wanted == OfferRanking::front) request.alone = static_cast<std::size_t>(-1);
  request.exhaustive = options.exhaustive;
  return request;
}

void add_plan_on_options(Subcommand command, PlanOnOptions& options) {
  Option on = command.add_option("--on", options.targets,
                                 "plan for hardware that is offered, not for this machine: h100:64, "
                                 "a3-highgpu-8g:8, v5p:4x4x4, v5p-128, v5p:4x4x4:2 "
                                 "(two slices), this (machine), any; several by commas; with them the target that is "
                                 "to run it: " +
                                     fmt::format("{}", fmt::join(job_targets_that(&JobTargetRow::jobs), ", ")));
  on.take_all();
  const auto add = [&](const char* name, auto& value, const std::string& help) {
    return command.add_option(name, value, help).needs(on);
  };
  add("--objective", options.objective,
      "fastest, cheapest, per-token (dollars), or front: all that nothing beats in both")
      .check(one_of({"fastest", "cheapest", "per-token", "front"}));
  add("--deadline", options.deadline, "all training is done within this time: 30d");
  add("--budget", options.budget, "and for no more dollars than this: 1M; without: objective.budget of the workload");
  add("--region", options.regions, "prices and machines of this region alone; may be repeated");
  add("--zone", options.zones, "of this zone alone; may be repeated");
  add("--chips-at-most", options.chips_at_most, "of one offer (default: 16384)").check(at_least(1));
  add("--stack", options.stack, "the software whose speed is assumed: megatron-core, maxtext, fsdp, ...");
  add("--precision", options.precision,
      "products in any of these: bf16,fp8,fp4; of a workload in f32 f32,tf32 (default: bf16, or f32). What is narrower "
      "is the stack's doing, and trains otherwise")
      .delimiter(',');
  command
      .add_option("--search", options.search,
                  "of workload: serve: also search precision, slots or both, as precision,slots: a table of what "
                  "devices carry with each")
      .delimiter(',')
      .check(one_of({"precision", "slots"}));
  add("--best", options.best, "so many layouts (default: 5)").check(at_least(1));
  add("--explain", options.explain, "an option that lost, by its number or name, beside the choice");
  add("--scale", options.scale,
      "so many chips each, beside each other, and where to stop: --on h100,v5p --scale 64,128,256")
      .delimiter(',')
      .check(at_least(1));
  command.add_flag("--scale-batch", options.scale_batch, "with --scale: rows of a chip stay, not those of a step")
      .needs("--scale");
  command
      .add_flag(
          "--prove{3}", options.prove,
          "let the vendor's compiler judge the best layouts, of --prove=5 five, without any device, one at a time: "
          "what does not fit loses; steps stay as predicted")
      .needs(on)
      .check(at_least(1));
  add("--charts", options.charts, "write charts into this folder, as SVG: front, time; with --scale scaling");
  command.add_flag("--all", options.all, "each offer by itself, and a hundred layouts").needs(on);
  command.add_flag("--exhaustive", options.exhaustive, "make every layout's Programs; the same answer, slowly")
      .needs(on);
  for (const char* name :
       {"--objective", "--deadline", "--budget", "--explain", "--all", "--exhaustive", "--best", "--out", "--prove"})
    command.option("--scale").excludes(command.option(name));
}

}  // namespace systole::cli

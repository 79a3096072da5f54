#include "operate/cli/plan_on.h"

#include <charconv>
#include <chrono>

#include "describe/models/list.h"
#include "ground/base/nearest.h"
#include "ground/base/quantity.h"
#include "ground/base/text_file.h"
#include "operate/cli/catalog_view.h"
#include "operate/cli/plan_on_node.h"
#include "operate/cli/plan_on_text.h"

namespace systole::cli {
namespace {

constexpr const char* kObjectives[] = {"fastest", "cheapest", "per-token", "front"};
constexpr std::int64_t kLayoutsOfAll = 100;

// What partitioning must know of an accelerator: nothing of its speed. Its compilers fuse elementwise ops.
Target target_of_accelerators() {
  Target target;
  target.name = "accelerator";
  target.kind = "null";
  target.dtypes = {DType::f32, DType::bf16};
  target.fusion.chains = true;
  return target;
}

Result<Dollars> parse_dollars(std::string_view text) {
  if (text.starts_with('$')) text.remove_prefix(1);
  double amount = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (failed == std::errc() && end == text.data() + text.size() && amount >= 0 && amount < 1e15) return Dollars(amount);
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

// How many steps the whole training has.
Result<double> steps_of(const WorkloadArguments& arguments, const Workload& workload, std::int64_t context) {
  const TrainSpec& train = workload.train;
  if (train.steps) return static_cast<double>(*train.steps);
  if (train.tokens)
    return static_cast<double>(*train.tokens) / static_cast<double>(train.batch * std::max<std::int64_t>(1, context));
  return error(ErrorKind::invalid,
               "train.time says when training ends, so that every choice takes as long: a plan needs steps or tokens")
      .at({arguments.path})
      .hinted("--set train.time=null --set train.steps=1000");
}

Result<ChoiceRequest> request_of(const PlanOnOptions& options) {
  ChoiceRequest request;
  for (int o = 0; o < 4; ++o)
    if (options.objective == kObjectives[o]) request.wanted = static_cast<Wanted>(o);
  if (!options.deadline.empty()) request.deadline = TRY(parse_deadline(options.deadline));
  if (!options.budget.empty()) request.budget = TRY(parse_dollars(options.budget));
  request.best = static_cast<std::size_t>(options.all ? std::max(options.best, kLayoutsOfAll) : options.best);
  if (options.all || request.wanted == Wanted::front) request.alone = static_cast<std::size_t>(-1);
  request.exhaustive = options.exhaustive;
  return request;
}

Result<OfferedPlan> made(const WorkloadArguments& arguments, const PlanOnOptions& options, CatalogView& view,
                         Context& context) {
  OfferedPlan plan;
  plan.arguments = arguments;
  plan.workload = TRY(load_workload(arguments)).workload;
  plan.request = TRY(request_of(options));
  plan.rules = {options.regions, options.zones, options.chips_at_most, TRY(stack_named(options.stack))};
  PlannedOffers offers = TRY(planned_offers(view.tables, view.catalog, options.targets, plan.rules));
  plan.request.offers = std::move(offers.offers);
  plan.left_out = std::move(offers.left_out);
  plan.catalog_date = view.catalog.date();
  plan.catalog_hash = view.catalog.hash();
  const auto begin = std::chrono::steady_clock::now();
  context.out.progress(fmt::format("{} offers", plan.request.offers.size()));
  const Composer composer(plan.workload, target_of_accelerators(), plan.request.threads);
  plan.parameters = num_parameters(composer.model());
  plan.context = composer.model().context();
  plan.request.steps = TRY(steps_of(arguments, plan.workload, plan.context));
  plan.choice = choose(composer, plan.request);
  plan.searched = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  const SizeSearch sizes{view.tables, view.catalog, plan.rules, composer, plan.request};
  if (plan.choice.chosen)
    plan.sizes = other_sizes(sizes, plan.request.offers[plan.choice.chosen->offer]);
  else if (!plan.choice.lost.empty())
    plan.larger = size_that_meets(sizes, plan.request.offers[plan.choice.lost.front().offer]);
  context.out.end_progress();
  return plan;
}

// Nothing fits, or nothing meets what was asked.
Error refusal(const OfferedPlan& plan) {
  const LostOption& nearest = plan.choice.lost.front();
  Error refused = error(ErrorKind::does_not_fit, "nothing that is offered will do; the nearest is {}: {}",
                        plan.request.offers[nearest.offer].offered.name, nearest.reason);
  if (plan.larger) refused.hint = fmt::format("--on {} does", plan.larger->offer.target);
  if (!nearest.edit.empty()) refused.hint += (refused.hint.empty() ? "" : "; or ") + nearest.edit;
  if (refused.hint.empty()) refused.hint = "--on other accelerators; systole catalog accelerators lists them";
  return refused;
}

}  // namespace

ExitCode plan_on(const WorkloadArguments& arguments, const PlanOnOptions& options, const std::string& out,
                 Context& context) {
  if (!out.empty()) check_writable(out).value();
  CatalogView view = open_catalog_view(context.clock).value();
  const OfferedPlan plan = made(arguments, options, view, context).value();
  if (!plan.workload.mesh.empty())
    context.out.message("the workload's own mesh is one of many here: --on chooses among all");
  for (const auto& [accelerator, why] : plan.left_out)
    context.out.message(fmt::format("left out: {}: {}", accelerator, why));
  if (!options.explain.empty()) {
    context.out.data(explained_text(plan, lost_option(plan, options.explain).value(), context.out));
  } else {
    context.out.data(offered_plan_text(plan, options.all, context.out));
  }
  if (const auto much = exposed_warning(plan)) context.out.warning(*much);
  const Node document = offered_plan_node(plan);
  context.out.json(document);
  if (!out.empty()) write_text_file(out, to_json(document, 1) + "\n").value();
  if (plan.choice.chosen) return ExitCode::done;
  if (context.out.json()) return ExitCode::no;
  fail(refusal(plan));
}

void add_plan_on_options(CLI::App& command, PlanOnOptions& options) {
  CLI::Option* on = command.add_option("--on", options.targets,
                                       "plan for hardware that is offered, not for this machine: h100:64, "
                                       "a3-highgpu-8g:8, v5p:4x4x4, v5p-128, v5p:4x4x4:2 "
                                       "(two slices), any; several by commas");
  on->take_all();
  const auto add = [&](const char* name, auto& value, const std::string& help) {
    return command.add_option(name, value, help)->needs(on);
  };
  add("--objective", options.objective,
      "fastest, cheapest, per-token (dollars), or front: all that nothing beats in both")
      ->check(CLI::IsMember({"fastest", "cheapest", "per-token", "front"}));
  add("--deadline", options.deadline, "all training is done within this time: 30d");
  add("--budget", options.budget, "and for no more dollars than this: 1M");
  add("--region", options.regions, "prices and machines of this region alone; may be repeated");
  add("--zone", options.zones, "of this zone alone; may be repeated");
  add("--chips-at-most", options.chips_at_most, "of one offer (default: 16384)")->check(at_least(1));
  add("--stack", options.stack, "the software whose speed is assumed: megatron-core, maxtext, fsdp, ...");
  add("--best", options.best, "so many layouts (default: 5)")->check(at_least(1));
  add("--explain", options.explain, "an option that lost, by its number or name, beside the choice");
  command.add_flag("--all", options.all, "each offer by itself, and a hundred layouts")->needs(on);
  command.add_flag("--exhaustive", options.exhaustive, "make every layout's Programs; the same answer, slowly")
      ->needs(on);
}

}  // namespace systole::cli

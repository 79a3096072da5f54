#include "operate/cli/plan_serve.h"

#include <algorithm>
#include <utility>

#include "execute/train/memory_plan.h"
#include "ground/process/machine.h"
#include "operate/check/lint.h"
#include "operate/render/quote.h"
#include "operate/render/server_words.h"
#include "operate/run/planned_replicas.h"
#include "operate/run/served_model.h"
#include "operate/run/xla_machine.h"
#include "predict/serving/serving_plan_text.h"
#include "predict/serving/serving_search.h"

namespace systole::cli {
namespace {

// What the server does not do on several devices, or training alone has.
Status check_options(const PlanOnOptions& options, const std::string& out) {
  const PlanOnOptions usual;
  const std::pair<const char*, bool> given[] = {{"--out", !out.empty()},
                                                {"--objective", options.objective != usual.objective},
                                                {"--deadline", !options.deadline.empty()},
                                                {"--budget", !options.budget.empty()},
                                                {"--scale", !options.scale.empty()},
                                                {"--prove", options.prove > 0},
                                                {"--explain", !options.explain.empty()},
                                                {"--best", options.best != usual.best},
                                                {"--all", options.all},
                                                {"--exhaustive", options.exhaustive},
                                                {"--charts", !options.charts.empty()}};
  for (const auto& [name, is_given] : given)
    if (is_given)
      return error(ErrorKind::invalid, "{} is of training, and this workload serves", name)
          .hinted(fmt::format("leave {} out; serve.objective says which latency is wanted", name));
  return {};
}

// The hardware of --on, without this machine.
struct ServingOn {
  std::vector<std::string> hardware;
  bool here = false;
};
Result<ServingOn> serving_on(const std::vector<std::string>& on) {
  NamedOn named = named_on(on);
  if (!named.targets.empty())
    return error(ErrorKind::invalid, "--on {} is what runs a job of training, and this workload serves",
                 named.targets.front()->name)
        .hinted("--on h100:1,l4:1, or this: hardware alone");
  ServingOn result{std::move(named.hardware), on.empty()};
  result.here |= std::erase(result.hardware, "this") > 0;
  return result;
}

// What the machine's rates are not of.
void warn_of_rates(const Machine& machine, Context& context) {
  const std::int64_t threads = machine.device->target().threads;
  if (machine.stale) context.out.warning(*machine.stale);
  if (machine.speed.calibrated && machine.speed.served.empty())
    context.out.warning(
        fmt::format("the calibration of {} measured no products of servers: steps are timed by the rates of training",
                    machine.catalog_date),
        threads == allowed_cores() ? "systole calibrate" : fmt::format("systole calibrate --threads {}", threads));
}

// `warns`: of what is the same for each candidate of a search.
Status add_here(const WorkloadArguments& arguments, const LoadedWorkload& loaded, ServingPlanner& planner, bool warns,
                Context& context) {
  if (is_xla(arguments.backend))
    return error(ErrorKind::unsupported, "--device {}: what its compiler needs is not known before it compiles",
                 arguments.backend)
        .hinted("--on with its chip, as --on h100:1");
  const PrepareOptions preparing = TRY(systole::prepare_options(arguments, loaded));
  ResourcesSpec resources = loaded.workload.resources;
  if (resources.threads) resources.threads = std::min<std::int64_t>(*resources.threads, allowed_cores());
  MachineUse use = serving_use(arguments.backend);
  use.ranks = loaded.workload.num_devices();
  if (use.ranks > 1 && !resources.threads) resources.threads = std::max<std::int64_t>(1, allowed_cores() / use.ranks);
  const Machine machine = TRY(open_machine(arguments.backend, resources, context.clock, use));
  if (warns) warn_of_rates(machine, context);
  const Catalog catalog = TRY(read_catalog(false));
  const CatalogEntry& entry = *TRY(catalog.find(machine.catalog_entry));
  std::optional<BytesPerSecond> disk;
  if (entry.facts.contains("disk.read")) disk = TRY(entry.bytes_per_second("disk.read"));
  const WorkspaceOf workspace_of = [&](const Graph& graph, const GraphNode& node) {
    return machine.device->workspace(graph, node);
  };
  return planner.add_here({.name = machine.device->target().name,
                           .target = machine.device->target(),
                           .workspace_of = workspace_of,
                           .speed = machine.speed,
                           .limit = limit_of(loaded.workload, preparing),
                           .disk = disk},
                          [](const Program& program) { return planned_libraries(program, Bytes()); });
}

// Prompts that the server refuses whatever it runs on.
void warn_of_long_prompts(const ServingPlan& plan, Context& context) {
  for (const ServingRow& row : plan.rows) {
    if (!row.capacity) continue;
    const ServingOutcome& outcome = row.capacity->outcome;
    const double share = static_cast<double>(outcome.too_long) / static_cast<double>(outcome.requests);
    if (share > kMostRefused)
      context.out.warning(fmt::format("{:.0f}% of the prompts are longer than serve.context ({}), and are refused",
                                      100 * share, plan.options.cache),
                          "a longer serve.context, up to the model's");
    return;
  }
}

// With the replicas that are planned, where the workload names none.
void warn_of_one_on_spot(Workload workload, const ServingRow& best, Context& context) {
  if (!workload.serve.replicas && best.carries()) workload.serve.replicas = CountRange{best.replicas, best.replicas};
  for (const Lint& found : lint(workload))
    if (found.rule == "one_on_spot") context.out.warning(fmt::format("{}: {}", found.key, found.text), found.hint);
}

// The table of --search.
ExitCode search(const WorkloadArguments& arguments, const LoadedWorkload& loaded, const PlanOnOptions& options,
                const ServingOn& on, Context& context) {
  ServingAxes axes;
  for (const std::string& axis : options.search) (axis == "slots" ? axes.slots : axes.precision) = true;
  std::optional<CatalogView> view;
  if (!on.hardware.empty()) view = open_catalog_view(context.clock).value();
  bool warns = true;
  const auto add_rows = [&](const Workload& workload, ServingPlanner& planner) -> Status {
    LoadedWorkload candidate = loaded;
    candidate.workload = workload;
    // This machine has no rows where it computes otherwise; others may.
    if (on.here && (on.hardware.empty() || workload.serve.compute == DType::f32))
      TRY(add_here(arguments, candidate, planner, std::exchange(warns, false), context));
    if (!view) return {};
    return planner.add_offers(view->tables, view->catalog, on.hardware, TRY(placed_rules(options, candidate)),
                              view->today);
  };
  const ServingSearch found =
      search_serving(loaded.workload, trace_of(loaded.workload).value(), axes, add_rows).value();
  context.out.end_progress();
  for (const auto& [what, why] : found.left_out) context.out.message(fmt::format("left out: {}: {}", what, why));
  context.out.prose(serving_search_text(found, context.out.width()));
  context.out.json(serving_search_node(found));
  const auto best = std::ranges::find_if(found.candidates, &ServingCandidate::best);
  if (best == found.candidates.end()) {
    if (context.out.json()) return ExitCode::no;
    fail(error(ErrorKind::does_not_fit, "no candidate carries any of this traffic")
             .hinted("--on faster accelerators, or a longer serve.objective"));
  }
  context.out.message(fmt::format("best: {}: systole plan {} {}", best->row.name, words_of(arguments),
                                  best->sets(loaded.workload.serve)));
  return ExitCode::done;
}

// "systole serve RUN --slots 8 --context 4096 --waiting 64".
std::string serve_words(const Workload& workload) {
  const std::string& weights = workload.model.weights;
  return fmt::format("systole serve {} {}", weights.empty() ? "RUN" : shell_word(weights),
                     fmt::join(serve_options(workload), " "));
}

}  // namespace

ExitCode plan_serve(const WorkloadArguments& arguments, const LoadedWorkload& loaded, const PlanOnOptions& options,
                    const std::string& out, Context& context) {
  check_options(options, out).value();
  const ServingOn on = serving_on(options.targets).value();
  context.out.progress("simulating");
  if (!options.search.empty()) return search(arguments, loaded, options, on, context);
  ServingPlanner planner = ServingPlanner::create(loaded.workload, trace_of(loaded.workload).value()).value();
  if (on.here) add_here(arguments, loaded, planner, true, context).value();
  if (!on.hardware.empty()) {
    CatalogView view = open_catalog_view(context.clock).value();
    planner.add_offers(view.tables, view.catalog, on.hardware, placed_rules(options, loaded).value(), view.today)
        .value();
  }
  const ServingPlan plan = planner.take();
  context.out.end_progress();
  for (const auto& [accelerator, why] : plan.left_out)
    context.out.message(fmt::format("left out: {}: {}", accelerator, why));
  warn_of_long_prompts(plan, context);
  warn_of_one_on_spot(loaded.workload, plan.rows.front(), context);
  context.out.prose(serving_plan_text(plan, context.out.width(),
                                      [&](std::string_view text) { return context.out.ink(Ink::bold, text); }));
  context.out.json(serving_plan_node(plan));
  if (!plan.rows.front().carries()) {
    if (context.out.json()) return ExitCode::no;
    fail(refusal_of(plan));
  }
  if (loaded.workload.serve.compute != DType::f32)
    context.out.message("serve.compute: this plan is of computing in bf16; systole serve computes in f32");
  context.out.message("next: " + serve_words(loaded.workload));
  return ExitCode::done;
}

}  // namespace systole::cli

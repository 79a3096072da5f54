#include "operate/cli/plan_on.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "describe/models/list.h"
#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "operate/cli/catalog_view.h"
#include "operate/cli/plan_charts.h"
#include "operate/cli/plan_on_document.h"
#include "operate/cli/plan_on_text.h"
#include "operate/cli/plan_prove.h"
#include "operate/cli/plan_scale.h"
#include "operate/render/gke/cluster.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

// How many steps the whole training has; nothing: train.time ends it.
std::optional<double> steps_of(const TrainSpec& train, std::int64_t context) {
  if (train.steps) return static_cast<double>(*train.steps);
  if (train.tokens)
    return static_cast<double>(*train.tokens) / static_cast<double>(train.batch * std::max<std::int64_t>(1, context));
  return std::nullopt;
}

// Where train.time ends training, all offers are paid for as long, whatever they reach in it: the deadline is met by
// all or none, and the budget leaves some out.
Status keep_limits(const WorkloadArguments& arguments, Seconds time, OfferedPlan& plan) {
  ChoiceRequest& asked = plan.request;
  if (asked.deadline && *asked.deadline < time) {
    return error(ErrorKind::invalid,
                 "train.time and --deadline contradict each other: training goes on for {}, and is "
                 "to end within {}",
                 to_string(time), to_string(*asked.deadline))
        .at({arguments.path})
        .hinted(
            fmt::format("--deadline {}, or --set train.time={:.0f}s", deadline_words(time), asked.deadline->count()));
  }
  asked.deadline.reset();
  if (!asked.budget) return {};
  std::map<std::string, std::optional<Dollars>> least;  // by accelerator, of those that are too dear
  std::erase_if(asked.offers, [&](const PlannedOffer& offer) {
    const std::optional<DollarsPerHour>& price = offer.offered.price;
    if (price && *price * time <= *asked.budget) return false;
    std::optional<Dollars>& of_accelerator = least[offer.accelerator];
    if (price && (!of_accelerator || *price * time < *of_accelerator)) of_accelerator = *price * time;
    return true;
  });
  for (const PlannedOffer& offer : asked.offers) least.erase(offer.accelerator);
  std::optional<Dollars> least_of_all;
  for (const auto& [accelerator, dollars] : least) {
    if (dollars && (!least_of_all || *dollars < *least_of_all)) least_of_all = dollars;
    plan.left_out.emplace_back(
        accelerator,
        dollars ? fmt::format("{} costs at least {}", to_string(time), to_string(*dollars)) : "its price is unknown");
  }
  if (asked.offers.empty()) {
    return error(ErrorKind::does_not_fit,
                 "train.time and --budget contradict each other: {} of what is offered costs at "
                 "least {}",
                 to_string(time), to_string(least_of_all.value()))
        .at({arguments.path})
        .hinted(fmt::format("--budget {}", budget_words(*least_of_all)));
  }
  asked.budget.reset();
  return {};
}

// As many as the best does in the time: so many everything is compared at.
double steps_in(Seconds time, const Composer& composer, const ChoiceRequest& request) {
  ChoiceRequest one = request;
  one.steps = 1;
  one.best = 1;
  const std::optional<Estimated> best = best_of_all(composer, one);
  return best ? std::max(1.0, std::floor(time.count() / best->step.seconds)) : 1;
}

// Dollars decide, and nobody knows any.
Status check_prices(const ChoiceRequest& asked) {
  const bool by_dollars = asked.wanted == Wanted::cheapest || asked.wanted == Wanted::per_token;
  const auto priced = [](const PlannedOffer& offer) { return offer.offered.price.has_value(); };
  if (!(asked.budget || by_dollars) || asked.offers.empty() || std::ranges::any_of(asked.offers, priced)) return {};
  return error(ErrorKind::invalid, "{} needs a price, and nobody knows one of what --on names: {}",
               asked.budget ? "--budget" : "--objective in dollars", asked.offers.front().price.note)
      .hinted(fmt::format("leave {} out; or give prices of your own: systole catalog prices --help",
                          asked.budget ? "--budget" : "--objective"));
}

// Deadline and budget, of which each could be met alone.
std::optional<Error> contradicting_limits(const OfferedPlan& plan) {
  const ChoiceRequest& asked = plan.request;
  if (!asked.budget || !asked.deadline) return std::nullopt;
  const Estimated *in_time = nullptr, *in_budget = nullptr;  // the cheapest in time, the fastest in budget
  for (const LostOption& lost : plan.choice.lost) {
    if (lost.refused || !lost.estimated || !lost.estimated->dollars) continue;
    const Estimated& e = *lost.estimated;
    if (e.total <= *asked.deadline && (in_time == nullptr || *e.dollars < *in_time->dollars)) in_time = &e;
    if (*e.dollars <= *asked.budget && (in_budget == nullptr || e.total < in_budget->total)) in_budget = &e;
  }
  if (in_time == nullptr || in_budget == nullptr) return std::nullopt;
  return error(ErrorKind::does_not_fit,
               "--deadline and --budget contradict each other: in time, the cheapest is {} for {}; within the budget, "
               "the fastest is {} in {}",
               asked.offers[in_time->offer].offered.name, to_string(*in_time->dollars),
               asked.offers[in_budget->offer].offered.name, to_string(in_budget->total))
      .hinted(fmt::format("--budget {}, or --deadline {}", budget_words(*in_time->dollars),
                          deadline_words(in_budget->total)));
}

// Of machines of Google's alone: others' have no such limits. On the terms that the workload asks for, which spend
// limits of their own, whatever its dollars are those of.
Result<std::vector<QuotaNeed>> quotas_of(const PlannedOffer& offer, const Workload& workload, CatalogTables& tables) {
  if (!is_gcp_zone(offer.zone)) return std::vector<QuotaNeed>();
  const Provisioning terms = workload.resources.provisioning.value_or(offer.price.provisioning);
  QuotaSpend nodes{.machine = offer.machine, .accelerator = offer.accelerator, .terms = terms};
  nodes.machines = offer.machines;
  (offer.slice ? nodes.chips : nodes.gpus) = offer.chips;
  return quota_needs(TRY(tables.quotas()), TRY(tables.machines()), gke_spends(std::move(nodes)));
}

Result<OfferedPlan> made(const WorkloadArguments& arguments, const PlanOnOptions& options, CatalogView& view,
                         Context& context) {
  OfferedPlan plan;
  plan.arguments = arguments;
  plan.workload = TRY(load_workload(arguments)).workload;
  plan.request = TRY(choice_request(options, plan.workload));
  plan.rules = TRY(offer_rules(options, plan.workload));
  TRY(check_layers(arguments, plan.workload));
  PlannedOffers offers = TRY(planned_offers(view.tables, view.catalog, options.targets, plan.rules));
  plan.request.offers = std::move(offers.offers);
  plan.left_out = std::move(offers.left_out);
  TRY(check_prices(plan.request));
  if (options.prove > 0) TRY(LayoutProver::check(plan.request.offers, view.catalog));
  plan.catalog_date = view.catalog.date();
  plan.catalog_hash = view.catalog.hash();
  plan.today = view.today;
  const auto begin = std::chrono::steady_clock::now();
  context.out.progress(counted(plan.request.offers.size(), "offer"));
  const Composer composer(plan.workload, target_of_accelerators(), plan.request.threads);
  plan.parameters = num_parameters(composer.model());
  plan.trainable = num_trainable(composer.model());
  plan.context = composer.model().context();
  const std::optional<double> steps = steps_of(plan.workload.train, plan.context);
  if (!steps) TRY(keep_limits(arguments, *plan.workload.train.time, plan));
  plan.request.steps = steps ? *steps : steps_in(*plan.workload.train.time, composer, plan.request);
  std::optional<LayoutProver> prover;
  if (options.prove > 0) {
    prover.emplace(plan.workload, plan.request.offers, view.catalog, context);
    plan.request.judged = static_cast<std::size_t>(options.prove);
    plan.request.judge = [&prover](const Estimated& e) { return prover->judge(e); };
  }
  plan.choice = choose(composer, plan.request);
  plan.request.judge = nullptr;
  if (prover) plan.proved = prover->take();
  plan.searched = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  const SizeSearch sizes{view.tables, view.catalog, plan.rules, composer, plan.request};
  if (plan.choice.chosen) {
    plan.quotas = TRY(quotas_of(plan.request.offers[plan.choice.chosen->offer], plan.workload, view.tables));
    plan.sizes = other_sizes(sizes, plan.request.offers[plan.choice.chosen->offer]);
    plan.sensitivities =
        sensitivities({view.tables, view.catalog, plan.rules, composer, plan.request}, *plan.choice.chosen);
  } else if (!plan.choice.lost.empty() && !contradicting_limits(plan)) {
    plan.larger = size_that_meets(sizes, plan.request.offers[plan.choice.lost.front().offer]);
  }
  if (offers.this_machine) {
    Result<std::optional<ThisMachine>> machine = this_machine(plan.workload, plan.parameters, context.clock);
    if (machine.ok())
      plan.here = std::move(*machine);
    else
      plan.left_out.emplace_back("this machine", machine.error().message);
  }
  context.out.end_progress();
  return plan;
}

// Nothing fits, or nothing meets what was asked.
Error refusal(const OfferedPlan& plan) {
  if (std::optional<Error> two = contradicting_limits(plan)) return *std::move(two);
  const LostOption& nearest = plan.choice.lost.front();
  Error refused = error(ErrorKind::does_not_fit, "nothing that is offered will do; the nearest is {}: {}",
                        plan.request.offers[nearest.offer].offered.name, nearest.reason);
  if (plan.larger) refused.hint = fmt::format("--on {} does", plan.larger->offer.target);
  if (!nearest.edit.empty()) refused.hint += (refused.hint.empty() ? "" : "; or ") + nearest.edit;
  if (refused.hint.empty()) refused.hint = "--on other accelerators; systole catalog accelerators lists them";
  return refused;
}

// A plan that is written is run as it is written.
Status check_runs_as_planned(const OfferedPlan& plan) {
  const ProductType type = plan.request.offers[plan.choice.chosen->offer].offered.kernels.products;
  if (type == ProductType::bf16 || type == ProductType::f32) return {};
  return error(ErrorKind::unsupported,
               "the choice does products in {}, which no key of the workload asks for: run --plan would do them in {}",
               name_of(type), in_32_bits(type) ? "f32" : "bf16")
      .hinted(fmt::format("--precision {}; or leave --out out", in_32_bits(type) ? "f32" : "bf16"));
}

}  // namespace

Target target_of_accelerators() {
  Target target;
  target.name = "accelerator";
  target.kind = "null";
  target.dtypes = {DType::f32, DType::bf16};
  target.fusion.chains = true;
  return target;
}

void warn_of_left_out(const Workload& workload, Context& context) {
  if (workload.ranks.tls)
    context.out.warning("ranks.tls: its cost is not in the estimate",
                        "systole calibrate measures it within this machine: link.tls.2 beside link.tcp.2");
  const Provisioning terms = workload.resources.provisioning.value_or(Provisioning::on_demand);
  if (terms == Provisioning::on_demand) return;
  context.out.warning(
      fmt::format(
          "resources.provisioning: {}: dollars here are those of machines on demand; other terms are not planned "
          "yet, nor how often a machine is taken away",
          name_of(terms)),
      "systole catalog prices lists what each of the terms costs");
}

Status check_layers(const WorkloadArguments& arguments, const Workload& workload) {
  if (workload.model.family != ModelSpec::Family::mlp) return {};
  return error(ErrorKind::unsupported,
               "the model is of family mlp: plan --on cuts and prices transformers' layers, and it has none")
      .at({arguments.path})
      .hinted(fmt::format("systole plan {} plans it for this machine; --on takes the families gpt, llama, bert and t5",
                          shell_word(arguments.path)));
}

ExitCode plan_on(const WorkloadArguments& arguments, const PlanOnOptions& options, const std::string& out,
                 Context& context) {
  if (!out.empty()) check_writable(out).value();
  if (!options.charts.empty()) make_chart_folder(options.charts).value();
  if (!options.scale.empty()) return plan_scale(arguments, options, context);
  CatalogView view = open_catalog_view(context.clock).value();
  const OfferedPlan plan = made(arguments, options, view, context).value();
  if (!plan.workload.mesh.empty())
    context.out.message("the workload's own mesh is one of many here: --on chooses among all");
  if (plan.workload.train.precision.compute == DType::f32)
    context.out.warning("train.precision computes in f32, which accelerators do many times slower than bf16",
                        "--set train.precision=bf16");
  warn_of_left_out(plan.workload, context);
  for (const auto& [accelerator, why] : plan.left_out)
    context.out.message(fmt::format("left out: {}: {}", accelerator, why));
  if (!options.explain.empty()) {
    context.out.prose(explained_text(plan, lost_option(plan, options.explain).value(), context.out));
  } else {
    context.out.prose(offered_plan_text(plan, options.all, context.out));
  }
  if (const auto much = exposed_warning(plan)) context.out.warning(*much);
  if (!options.charts.empty()) {
    const std::pair<const char*, std::string> charts[] = {{"front.svg", front_svg(plan)}, {"time.svg", time_svg(plan)}};
    for (const auto& [name, svg] : charts)
      if (!svg.empty()) write_text_file(options.charts + "/" + name, svg).value();
  }
  if (!out.empty() && plan.choice.chosen) check_runs_as_planned(plan).value();
  if (context.out.json() || !out.empty()) {
    const Node document = plan_document(plan, context.clock).value();
    context.out.json(document);
    if (!out.empty() && plan.choice.chosen) {
      write_text_file(out, to_json(document, 1) + "\n").value();
      context.out.message("written: " + out);
      context.out.message(fmt::format("next: systole run --plan {}, on {}", shell_word(out),
                                      counted(plan.choice.chosen->candidate.devices(), "device")));
    }
  }
  if (plan.choice.chosen) return ExitCode::done;
  if (context.out.json()) return ExitCode::no;
  fail(refusal(plan));
}

}  // namespace systole::cli

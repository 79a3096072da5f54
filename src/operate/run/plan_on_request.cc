#include "operate/run/plan_on_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ground/base/counted.h"
#include "ground/base/nearest.h"
#include "ground/base/number_from.h"
#include "ground/base/quantity.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/run/rows_if_built.h"
#include "operate/run/shapes_here.h"
#include "operate/run/storage_here.h"
#include "operate/targets/gke/cluster.h"
#include "operate/targets/job_targets.h"
#include "predict/plan/volume_sizes.h"

namespace systole {
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

// Only for Google's machines. Counts quotas of the workload's provisioning terms, even if its dollars are on-demand
// prices.
Result<std::vector<QuotaNeed>> quotas_of(const ClusterOffer& offer, const Workload& workload, CatalogTables& tables) {
  if (!is_gcp_zone(offer.zone)) return std::vector<QuotaNeed>();
  const Provisioning terms = workload.resources.provisioning.value_or(offer.price.provisioning);
  QuotaSpend nodes{.machine = offer.machine, .accelerator = offer.accelerator, .terms = terms};
  nodes.machines = offer.machines;
  (offer.slice ? nodes.chips : nodes.gpus) = offer.chips;
  return quota_needs(TRY(tables.quotas()), TRY(tables.machines()), gke_spends(std::move(nodes)));
}

// Plans this machine, if --on names it.
void look_here(PlanReport& plan, Clock& clock) {
  if (!plan.this_machine) return;
  Result<PlanFacts> here = plan_here(plan.workload, plan.parameters, clock, plan.shapes);
  if (here.ok())
    plan.here = std::move(*here);
  else if (here.error().kind != ErrorKind::does_not_fit)
    plan.left_out.emplace_back("this machine", here.error().message);
}

// The hardware that the workload names, where --on names a target alone.
Result<std::string> own_hardware(const Workload& workload, const JobTargetRow& target) {
  const ResourcesSpec& resources = workload.resources;
  if (resources.accelerators.empty())
    return error(ErrorKind::invalid, "--on {} names a target, and nothing names its hardware", target.name)
        .hinted(fmt::format("--on {},h100:8; or resources.accelerators in the workload", target.name));
  const std::string slices = resources.slices.value_or(1) > 1 ? fmt::format(":{}", *resources.slices) : "";
  return resources.accelerators.ends_with(slices) ? resources.accelerators : resources.accelerators + slices;
}

bool makes_nodes(const JobTargetRow* target) { return target->provisions.can; }

// Machines' own disks are for pods of a cluster that is there: a target that makes its nodes gives them none. What the
// workload's keys mean is no answer: `volumes` are those of every target with pods.
StorageFacts storage_facts(const Workload& workload, const std::vector<const JobTargetRow*>& named) {
  StorageFacts facts;
  if (mount_of(workload, workload.data.folder) != nullptr) facts.holds = shards_of(workload);
  facts.local_ssd = !named.empty() && std::ranges::none_of(named, makes_nodes);
  return facts;
}

// Errors: unsupported: a volume on disks that no target of `run_by` gives to pods.
Status check_local_disks(const LoadedWorkload& loaded, const std::vector<const JobTargetRow*>& run_by) {
  if (run_by.empty() || !std::ranges::all_of(run_by, makes_nodes)) return {};
  for (const auto& [path, volume] : loaded.workload.volumes)
    if (volume.kind == VolumeSpec::Kind::local_ssd)
      return loaded.source.placed(
          key_error(ErrorKind::unsupported, fmt::format("volumes.{}.local_ssd", path),
                    "the nodes that {} makes have no disks for pods", run_by.front()->name)
              .hinted("hyperdisk or filestore; or --on kubernetes, and a pool of --ephemeral-storage-local-ssd"));
  return {};
}

// Keeps the rules to the place where the workload has the target make its nodes. Returns the key that says it; empty:
// none does. Errors: invalid: --zone or --region exclude it.
Result<std::string> keep_to_place(const LoadedWorkload& loaded, const std::vector<const JobTargetRow*>& run_by,
                                  OfferRules& rules) {
  const GkeSpec& gke = loaded.workload.gke;
  const std::string key = gke.zone.empty() ? "gke.location" : "gke.zone",
                    place = gke.zone.empty() ? gke.location : gke.zone;
  const bool zone = is_gcp_zone(place);
  if (run_by.empty() || !std::ranges::all_of(run_by, makes_nodes) || !(zone || is_gcp_region(place))) return "";
  const std::string region = zone ? std::string(gcp_region_of(place)) : place;
  const auto excluded = [&](const char* option, const std::vector<std::string>& allowed) {
    return loaded.source.placed(key_error(ErrorKind::invalid, key, "the nodes are made in {}, and {} asks for {}",
                                          place, option, fmt::join(allowed, ", "))
                                    .hinted(fmt::format("leave {} out; or another {}", option, key)));
  };
  if (!rules.regions.empty() && std::ranges::find(rules.regions, region) == rules.regions.end())
    return excluded("--region", rules.regions);
  const auto elsewhere = [&](const std::string& one) { return zone ? one != place : gcp_region_of(one) != region; };
  if (std::ranges::all_of(rules.zones, elsewhere) && !rules.zones.empty()) return excluded("--zone", rules.zones);
  std::erase_if(rules.zones, elsewhere);
  rules.regions = {region};
  if (zone) rules.zones = {place};
  return key;
}

// As a Plan has it. The readers' own speed there is unknown.
PlannedFeed planned_feed(const OfferedFeed& offered, const Workload& workload) {
  PlannedFeed feed{.rows = static_cast<std::int64_t>(std::ceil(offered.rows)),
                   .row_bytes = offered.row_bytes,
                   .nodes = offered.nodes};
  feed.rows_per_second = offered.rows_per_second();
  feed.readers = workload.data.readers.value_or(feed.readers);
  feed.queue = workload.data.queue.value_or(feed.queue);
  feed.unknown = "the readers' speed there is not measured";
  return feed;
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

Result<OfferRules> placed_rules(const PlanOnOptions& options, const LoadedWorkload& loaded) {
  OfferRules rules = TRY(offer_rules(options, loaded.workload));
  TRY(keep_to_place(loaded, job_targets_meant(loaded.workload, loaded.source), rules));
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

Status check_layers(const WorkloadArguments& arguments, const Workload& workload) {
  if (workload.model.layers() > 0) return {};
  return error(ErrorKind::unsupported,
               "the model is of family {}: plan --on cuts and prices transformers' layers, and it has none",
               workload.model.family_name())
      .at({arguments.path})
      .hinted(fmt::format("systole plan {} plans it for this machine; --on takes the families gpt, llama, bert and t5",
                          shell_word(arguments.path)));
}

Result<std::vector<PlannedShape>> built_shapes(const WorkloadArguments& arguments, const LoadedWorkload& loaded) {
  if (!loaded.workload.data.buckets) return std::vector<PlannedShape>();
  Workload of_any_mesh = loaded.workload;
  of_any_mesh.mesh.clear();
  if (const Status shapes = check_shapes(of_any_mesh); !shapes.ok()) return told_of_job(loaded.source, shapes.error());
  const std::optional<EpochRows> rows = rows_if_built(loaded.workload, loaded.source);
  if (!rows || rows->buckets.empty())
    return loaded.source.placed(
        error(ErrorKind::not_found,
              "plan --on weighs the steps of each length by their number in an epoch, which follows from data that are "
              "not built")
            .hinted("systole data build " + words_of(arguments) +
                    " builds the data, data lengths shows them; or --set data.buckets=null prices rows of "
                    "model.context alone"),
        "data.buckets");
  std::vector<PlannedShape> shapes = epoch_shapes(loaded.workload, *rows);
  for (const PlannedShape& shape : shapes)
    if (shape.epoch_steps == 0)
      return loaded.source.placed(
          error(ErrorKind::invalid, "data.drop_remainder: the rows of up to {} are no step of {}: all would be dropped",
                counted(shape.length, "token"), shape.rows)
              .hinted("a smaller train.batch, fewer data.buckets, or data.drop_remainder: false"),
          "data.drop_remainder");
  return shapes;
}

Result<PlanReport> plan_on_offers(const WorkloadArguments& arguments, const LoadedWorkload& loaded,
                                  const PlanOnOptions& options, CatalogView& view, const PlanMessages& messages,
                                  Clock& clock) {
  const Workload& workload = loaded.workload;
  NamedOn named = named_on(options.targets);
  if (named.hardware.empty()) named.hardware = {TRY(own_hardware(workload, *named.targets.front()))};
  const std::vector<const JobTargetRow*> typed = named.targets;
  if (named.targets.empty()) named.targets = job_targets_meant(workload, loaded.source);
  OfferedPlanRequest request{.workload = workload,
                             .path = arguments.path,
                             .targets = std::move(named.hardware),
                             .run_by = std::move(named.targets)};
  request.choice = TRY(choice_request(options, workload));
  request.rules = TRY(offer_rules(options, workload));
  request.proved = static_cast<std::size_t>(std::max<std::int64_t>(0, options.prove));
  request.today = view.today;
  TRY(check_layers(arguments, workload));
  request.shapes = TRY(built_shapes(arguments, loaded));
  if (Status sizes = check_sizes(workload, TRY(view.tables.storage())); !sizes.ok())
    return loaded.source.placed(sizes.error());
  TRY(check_local_disks(loaded, request.run_by));
  const std::string placed_by = TRY(keep_to_place(loaded, request.run_by, request.rules));
  if (workload.data.kind == DataSpec::Kind::text) request.storage = storage_facts(workload, typed);
  Result<HardwarePlan> made = plan_offered(std::move(request), view.tables, view.catalog, messages, clock);
  if (!made.ok()) {
    Error why = naming_file(arguments, std::move(made).error());
    if (!placed_by.empty() && why.kind == ErrorKind::not_found) why.message += fmt::format(" ({})", placed_by);
    return why;
  }
  PlanReport plan{*std::move(made), arguments};
  if (const auto& chosen = plan.choice.chosen) {
    const ClusterOffer& offer = plan.request.offers[chosen->offer];
    plan.quotas = TRY(quotas_of(offer, plan.workload, view.tables));
    if (workload.data.kind == DataSpec::Kind::text) {
      plan.feed_there =
          offered_feed(plan.workload, offer.machines, Seconds(chosen->step.seconds),
                       TRY(storage_of(plan.workload, plan.workload.data.folder, view.tables)), plan.shapes);
      plan.feed = planned_feed(*plan.feed_there, plan.workload);
    }
  }
  look_here(plan, clock);
  return plan;
}

}  // namespace systole

#include "predict/serving/serving_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "describe/models/list.h"
#include "ground/base/counted.h"

namespace systole {
namespace {

Bytes no_workspace(const Graph&, const GraphNode&) { return {}; }

// Why a device carries nothing, by what it does with hardly any traffic.
std::string why_nothing(const ServingOutcome& idle, const ServeSpec& serve) {
  if (idle.requests == idle.too_long) return "every prompt is longer than the cache";
  if (serve.tpot && Seconds(idle.tpot_p95.value) > *serve.tpot)
    return fmt::format("a token takes {} even alone (tpot {})", to_string(Seconds(idle.tpot_p95.value)),
                       to_string(*serve.tpot));
  if (serve.ttft && Seconds(idle.ttft_p95.value) > *serve.ttft)
    return fmt::format("the first token takes {} even alone (ttft {})", to_string(Seconds(idle.ttft_p95.value)),
                       to_string(*serve.ttft));
  return fmt::format("{:.0f}% of requests are refused even with little traffic", 100 * idle.refused_share());
}

// Dollars for an hour of a device; infinite: unknown. As a float, so that sums of equal prices are equal.
float device_price(const ClusterOffer& offer) {
  if (!offer.offered.price) return std::numeric_limits<float>::infinity();
  return static_cast<float>(offer.offered.price->count() / static_cast<double>(offer.offered.cluster.devices));
}

// Leaves out the offers whose devices make no whole replicas of so many.
Status keep_whole_replicas(ClusterOffers& found, std::int64_t parts) {
  std::erase_if(found.offers, [&](const ClusterOffer& offer) {
    const std::int64_t devices = offer.offered.cluster.devices;
    if (devices % parts == 0) return false;
    found.left_out.emplace_back(
        offer.offered.name,
        fmt::format("{} hold{} no whole replica of {}", counted(devices, "device"), devices == 1 ? "s" : "", parts));
    return true;
  });
  if (!found.offers.empty() || parts == 1) return {};
  return key_error(ErrorKind::does_not_fit, "mesh", "no offer has devices for whole replicas of {}", parts)
      .hinted(
          fmt::format("--on with {} devices or a multiple, as --on h100:{}, or fewer under mesh.model", parts, parts));
}

// Replicas share nothing, so that of all sizes of an accelerator the cheapest a device is enough, and of these the
// smallest.
std::vector<ClusterOffer> best_of_each(std::vector<ClusterOffer> offers) {
  std::map<std::string, ClusterOffer> best;
  for (ClusterOffer& offer : offers) {
    const auto [at, first] = best.try_emplace(offer.accelerator, offer);
    const auto rank = [](const ClusterOffer& one) { return std::pair(device_price(one), one.offered.cluster.devices); };
    if (!first && rank(offer) < rank(at->second)) at->second = std::move(offer);
  }
  std::vector<ClusterOffer> kept;
  for (auto& [accelerator, offer] : best) kept.push_back(std::move(offer));
  return kept;
}

// Rows that carry traffic come first, those of known price before others; then the fewest dollars, then the smaller
// offer, then most traffic.
bool better(const ServingRow& a, const ServingRow& b) {
  const auto rank = [](const ServingRow& row) {
    const double tokens = row.carries() ? row.capacity->outcome.tokens_per_second : 0;
    return std::tuple(!row.carries(), !row.capacity, !row.per_million,
                      static_cast<float>(row.per_million ? row.per_million->count() : 0), row.devices, -tokens);
  };
  return rank(a) < rank(b);
}

std::string why_lost(const ServingRow& row, const ServingRow& best, const ServeSpec& serve) {
  if (!row.memory.fits())
    return fmt::format("does not fit: {} of {}", to_string(row.memory.total()), to_string(row.memory.limit));
  if (row.priced.unknown) return *row.priced.unknown;
  if (!row.carries()) return why_nothing(row.capacity->outcome, serve);
  if (&row == &best || !best.carries()) return "";
  if (!best.per_million) {
    if (row.devices > best.devices) return "a larger offer, and no price is known";
    return fmt::format("carries {:.0f}% less",
                       100 * (1 - row.capacity->outcome.tokens_per_second / best.capacity->outcome.tokens_per_second));
  }
  if (!row.per_million) return "its price is unknown";
  const double dearer = *row.per_million / *best.per_million - 1;
  return dearer < 0.005 ? "as dear a token" : fmt::format("{:.0f}% dearer a token", 100 * dearer);
}

}  // namespace

std::optional<Seconds> ServingRow::load() const {
  if (!disk || priced.unknown) return std::nullopt;
  return memory.parameters / *disk;
}

std::string ServingPlan::words_of_load(double load) const {
  if (!trace.empty()) return rate_text(load * rate_of(trace)) + " requests/s";
  if (workload.serve.traffic.users) return counted(std::llround(load), "user");
  return rate_text(load) + " requests/s";
}

Seconds ServingPlan::first_token(const ServingRow& row) const {
  const std::int64_t prompt = trace.empty() ? workload.serve.traffic.prompt.mean : trace.front().prompt;
  return row.priced.times.prefill_of(std::min(options.cache, prompt));
}

Result<ServingPlanner> ServingPlanner::create(const Workload& workload, std::vector<ArrivingRequest> trace) {
  CHECK(workload.kind == Workload::Kind::serve, "a workload that trains");
  ServingPlanner planner;
  ServingPlan& plan = planner.plan_;
  plan.workload = workload;
  plan.trace = std::move(trace);
  plan.asked = asked_load(workload.serve.traffic);
  try {
    planner.model_ = make_model(workload.model);
    plan.parameters = num_parameters(*planner.model_);
    plan.options = completed(*planner.model_, {.slots = workload.serve.slots,
                                               .cache = workload.serve.context.value_or(0),
                                               .parameter = workload.serve.parameter,
                                               .compute = workload.serve.compute,
                                               .cache_type = workload.serve.cache,
                                               .parts = workload.num_devices()});
  } catch (const Failure& failure) { return failure.error(); }
  return planner;
}

Result<Program> ServingPlanner::program_for(const Target& target, const WorkspaceOf& workspace_of) const {
  try {
    return engine_program(*model_, plan_.options, target, workspace_of);
  } catch (const Failure& failure) { return failure.error(); }
}

// Fills in what follows from memory and times.
void ServingPlanner::play(ServingRow& row) const {
  const ServeSpec& serve = plan_.workload.serve;
  if (row.priced.unknown || !row.memory.fits()) return;
  SimulatedServer server{row.priced.times, serving_limits(*model_, plan_.options, serve.waiting),
                         model_->target_context()};
  // All slots have their pages and no prompts begin alike, so a pool would decide nothing.
  server.limits.pages = 0;
  server.limits.prefill_beside = serve.prefill_tokens.value_or(0);
  if (!serve.prefill_tokens) server.limits.hold = serve.tpot.value_or(kUsualHold);
  row.capacity = capacity_of(server, serve, plan_.trace);
  const ServingCapacity& most = *row.capacity;
  if (most.load <= 0) return;
  row.replicas = replicas_for(plan_.asked, most.load);
  double share = plan_.asked / static_cast<double>(row.replicas);
  if (serve.traffic.users) share = std::ceil(share);
  row.asked = outcome_of(play_load(server, serve.traffic, plan_.trace, share));
  const double tokens =
      most.outcome.tokens_per_second * static_cast<double>(row.devices) / static_cast<double>(row.parts);
  if (row.price && tokens > 0) row.per_million = *row.price * Seconds(1e6 / tokens);
}

Status ServingPlanner::add_here(const Here& here, const std::function<Bytes(const Program&)>& outside) {
  if (plan_.options.compute != DType::f32)
    return key_error(ErrorKind::unsupported, "serve.compute", "{} computes in f32", here.name)
        .hinted("--on h100:1, or --set serve.compute=f32");
  const Program program = TRY(program_for(here.target, here.workspace_of));
  ServingRow row;
  row.name = here.name;
  row.calibrated = here.speed.calibrated && !here.speed.served.empty();
  row.price = plan_.workload.resources.price;
  row.devices = row.parts = plan_.options.parts;
  row.memory = serving_memory(program, outside(program), Bytes(here.limit.count() / row.parts));
  row.priced = times_on_machine(program, plan_.options, here.speed);
  row.disk = here.disk;
  play(row);
  plan_.rows.push_back(std::move(row));
  return {};
}

Status ServingPlanner::add_offers(CatalogTables& tables, const Catalog& catalog, std::span<const std::string> targets,
                                  const OfferRules& rules, std::string today) {
  ClusterOffers found = TRY(planned_offers(tables, catalog, targets, rules));
  plan_.catalog_date = catalog.date();
  plan_.today = std::move(today);
  TRY(keep_whole_replicas(found, plan_.options.parts));
  plan_.left_out = std::move(found.left_out);
  if (std::ranges::any_of(targets, [](const std::string& target) { return target == "any"; }))
    found.offers = best_of_each(std::move(found.offers));
  const Program program = TRY(program_for(target_of_accelerators(), no_workspace));
  for (ClusterOffer& offer : found.offers) {
    const HardwareOption& offered = offer.offered;
    ServingRow row;
    row.name = offered.name;
    row.devices = offered.cluster.devices;
    row.parts = plan_.options.parts;
    row.price = offered.price;
    const Bytes outside(std::llround(offered.stack.context * static_cast<double>(kGiB.count())));
    row.memory = serving_memory(program, outside, offered.cluster.chip.capacity);
    row.priced = times_on_chip(program, plan_.options, offered.cluster.chip, offered.kernels, offered.stack,
                               row.parts > 1 ? &offered.cluster : nullptr);
    row.offer = std::move(offer);
    play(row);
    plan_.rows.push_back(std::move(row));
  }
  return {};
}

ServingPlan ServingPlanner::take() {
  std::ranges::stable_sort(plan_.rows, better);
  for (ServingRow& row : plan_.rows) row.lost = why_lost(row, plan_.rows.front(), plan_.workload.serve);
  return std::move(plan_);
}

std::string rate_text(double rate) {
  return rate < 999.5 ? fmt::format("{:.3g}", rate) : with_commas(std::llround(rate));
}

namespace {

// The least number of devices that hold a replica of `row` in equal parts of parameters and cache. 0: none does, since
// every device has some of the heads of keys and values.
std::int64_t parts_that_fit(const ModelSpec& model, const ServingRow& row) {
  const auto* decoder = std::get_if<DecoderSpec>(&model.family);
  if (decoder == nullptr) return 0;
  const std::int64_t heads = decoder->kv_heads > 0 ? decoder->kv_heads : decoder->heads;
  const ServingMemory& memory = row.memory;
  for (std::int64_t parts = row.parts + 1; parts <= heads; ++parts)
    if (heads % parts == 0 &&
        (memory.parameters + memory.cache) * (static_cast<double>(row.parts) / static_cast<double>(parts)) +
                memory.rest + memory.outside <=
            memory.limit)
      return parts;
  return 0;
}

}  // namespace

Error refusal_of(const ServingPlan& plan) {
  const ServingRow& nearest = plan.rows.front();
  Error refused = error(ErrorKind::does_not_fit, "{} carries none of this traffic: {}", nearest.name, nearest.lost);
  const ServingMemory& memory = nearest.memory;
  if (!memory.fits() && plan.workload.model.task() == Task::language && plan.options.cache_type == DType::f32 &&
      memory.total() - memory.cache * 0.5 <= memory.limit)
    return std::move(refused).hinted("--set serve.cache=bf16, in which keys and values take half");
  const bool too_large = !memory.fits() && memory.parameters + memory.rest + memory.outside > memory.limit;
  if (!memory.fits() && !too_large && memory.cache > memory.limit * 0.1)
    return std::move(refused).hinted(fmt::format("--set serve.slots={}, or a shorter serve.context",
                                                 std::max<std::int64_t>(1, plan.options.slots / 2)));
  if (const std::int64_t parts = too_large && nearest.offer ? parts_that_fit(plan.workload.model, nearest) : 0;
      parts > 0)
    return std::move(refused).hinted(fmt::format(
        "--set mesh.model={0}, by which {0} devices hold the model together (--on with {0}, or a multiple)", parts));
  if (!memory.fits()) return std::move(refused).hinted("--on accelerators with more memory");
  return std::move(refused).hinted("--on faster accelerators, or a longer serve.objective");
}

}  // namespace systole

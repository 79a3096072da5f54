#include "predict/plan/scaling.h"

#include <algorithm>

#include "ground/catalog/hardware.h"
#include "predict/plan/mean_step.h"
#include "predict/plan/offer_builder.h"

namespace systole {
namespace {

Status check(const ScaleRequest& request) {
  for (const std::int64_t size : request.sizes) {
    if (size < 1) return error(ErrorKind::invalid, "--scale: {} is no number of chips", size).hinted("--scale 8,16,32");
    if (std::ranges::count(request.sizes, size) > 1)
      return error(ErrorKind::invalid, "--scale names {} twice", size).hinted("--scale 8,16,32");
  }
  for (const std::string& name : request.hardware) {
    const std::size_t colon = name.find(':');
    if (colon != name.npos || name == "any")
      return error(ErrorKind::invalid,
                   "--on {}: with --scale it is a kind of chip or machine, and --scale says how many", name)
          .hinted(name == "any" ? "--on h100,v5p --scale 64,128,256"
                                : fmt::format("--on {} --scale 64,128,256", name.substr(0, colon)));
  }
  return {};
}

class Scaling {
 public:
  Scaling(const ScaleSearch& search, const ScaleRequest& request) : search_(search), request_(request) {}

  Result<std::vector<ScaleCurve>> run() {
    TRY(check(request_));
    std::vector<std::int64_t> sizes = request_.sizes;
    std::ranges::sort(sizes);
    std::vector<ScaleCurve> curves;
    for (const std::string& name : request_.hardware) {
      ScaleCurve curve;
      curve.hardware = name;
      for (const std::int64_t chips : sizes) curve.points.push_back(TRY(point(name, chips, sizes.front())));
      judge(curve);
      curves.push_back(std::move(curve));
    }
    return curves;
  }

 private:
  // The target with so many chips of it. Errors: invalid: a machine that so many chips do not fill.
  Result<std::string> target(const std::string& name, std::int64_t chips) const {
    const auto machines = TRY(search_.tables.machines());
    const auto type = std::ranges::find(machines, name, &MachineType::name);
    if (type != machines.end() && !type->accelerator.empty() && type->kind != MachineKind::tpu) {
      const auto each = std::max<std::int64_t>(1, static_cast<std::int64_t>(type->accelerators));
      if (chips % each != 0)
        return error(ErrorKind::invalid, "{} has {}: {} chips", name, type->accelerators_text(),
                     nearest_multiples(chips, each));
      return fmt::format("{}:{}", name, chips / each);
    }
    const std::size_t at = std::min(name.find('@'), name.size());
    const Result<const CatalogEntry*> chip = search_.catalog.find_accelerator(name.substr(0, at));
    if (chip.ok() && (*chip)->kind == "tpu")
      if (const std::string slices = TRY(several_slices(**chip, chips)); !slices.empty()) return slices;
    return fmt::format("{}:{}{}", name.substr(0, at), chips, name.substr(at));
  }

  // A target of several slices, for more chips than one slice has; "": one is enough, or no size divides the chips.
  Result<std::string> several_slices(const CatalogEntry& chip, std::int64_t chips) const {
    const double most = number_of(chip, "chips.max").value_or(1e9);
    const TpuSlice* largest = nullptr;
    for (const TpuSlice& slice : TRY(search_.tables.slices())) {
      if (slice.accelerator != chip.name || !slice.usual || static_cast<double>(slice.chips) > most) continue;
      if (slice.chips >= chips) return std::string();
      if (chips % slice.chips == 0 && (largest == nullptr || slice.chips > largest->chips)) largest = &slice;
    }
    if (largest == nullptr) return std::string();
    return fmt::format("{}:{}", largest->by_shape(), chips / largest->chips);
  }

  Result<ScalePoint> point(const std::string& name, std::int64_t chips, std::int64_t smallest) {
    ScalePoint point;
    point.chips = chips;
    point.batch = search_.composer.asked().train.batch;
    const Result<std::string> asked = target(name, chips);
    if (!asked.ok()) {
      point.refused = asked.error().message;
      return point;
    }
    Result<ClusterOffers> found =
        planned_offers(search_.tables, search_.catalog, std::vector<std::string>{*asked}, search_.rules);
    if (!found.ok()) {
      if (found.error().kind == ErrorKind::not_found) return std::move(found).error();
      point.refused = found.error().message;
      if (const std::string of_it = fmt::format("--on {}: ", *asked); point.refused.starts_with(of_it))
        point.refused.erase(0, of_it.size());  // the row names the target
      return point;
    }
    if (request_.batch_scales) {
      if (point.batch * chips % smallest != 0) {
        point.refused = fmt::format("{} rows of {} chips are no whole number of {}", point.batch, smallest, chips);
        return point;
      }
      point.batch = point.batch * chips / smallest;
    }
    look(std::move(found->offers), point);
    return point;
  }

  void look(std::vector<ClusterOffer> offers, ScalePoint& point) {
    SearchRequest fastest;
    for (const ClusterOffer& offer : offers) fastest.offered.push_back(offer.offered);
    fastest.best = 1;
    fastest.threads = search_.threads;
    const Composer& composer = composer_of(point.batch);
    SearchResult result = search(composer, fastest);
    if (result.best.empty()) {
      const auto least = result.least_memory.find(0);
      const bool cut = least != result.least_memory.end();
      point.offer = std::move(offers[cut ? least->second.offer : 0]);
      point.refused = cut ? fmt::format("needs {} a device at the least", to_string(least->second.bytes))
                          : fmt::format("no layout cuts a batch of {} and this model so often", point.batch);
      return;
    }
    point.offer = std::move(offers[result.best.front().offer]);
    point.best = std::move(result.best.front());
    point.best->offer = 0;
    const auto sequence_length = static_cast<double>(composer.model().sequence_length());
    point.tokens_per_second = static_cast<double>(point.batch) * sequence_length / point.best->step.seconds;
    if (const std::vector<PlannedShape>& shapes = composer.shapes(); !shapes.empty())  // padding not counted
      point.tokens_per_second = mean_tokens(shapes) * static_cast<double>(point.batch) /
                                static_cast<double>(search_.composer.asked().train.batch) / point.best->step.seconds;
    if (point.offer->offered.price)
      point.million_tokens = *point.offer->offered.price * Seconds(1e6 / point.tokens_per_second);
  }

  const Composer& composer_of(std::int64_t batch) {
    if (batch == search_.composer.asked().train.batch) return search_.composer;
    std::unique_ptr<Composer>& composer = composers_[batch];
    if (composer == nullptr) {
      Workload workload = search_.composer.asked();
      workload.train.batch = batch;
      composer = std::make_unique<Composer>(std::move(workload), search_.composer.target(), search_.threads,
                                            search_.composer.shapes());
    }
    return *composer;
  }

  const ScaleSearch& search_;
  const ScaleRequest& request_;
  std::map<std::int64_t, std::unique_ptr<Composer>> composers_;  // by batch
};

}  // namespace

void judge(ScaleCurve& curve) {
  const ScalePoint *first = nullptr, *paid = nullptr;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    ScalePoint& point = curve.points[i];
    if (!point.best) continue;
    if (first == nullptr) first = &point;
    const auto chips = static_cast<double>(point.chips);
    point.efficiency = point.tokens_per_second / chips / (first->tokens_per_second / static_cast<double>(first->chips));
    if (paid != nullptr) {
      const auto had = static_cast<double>(paid->chips);
      point.added =
          (point.tokens_per_second - paid->tokens_per_second) / (paid->tokens_per_second / had * (chips - had));
      if (*point.added < kPaying) {
        if (curve.reason.empty())
          curve.reason =
              fmt::format("the {} chips more of {} add {:.0f}% of the speed that as many had at {}, and {:.0f}% pays",
                          point.chips - paid->chips, point.chips, 100 * *point.added, paid->chips, 100 * kPaying);
        continue;
      }
    }
    curve.reason.clear();
    curve.stop = i;
    paid = &point;
  }
  if (first == nullptr)
    curve.reason = "no size fits";
  else if (curve.reason.empty())
    curve.reason = "no larger size was asked for that fits: so far all pay";
}

Result<std::vector<ScaleCurve>> scale(const ScaleSearch& search, const ScaleRequest& request) {
  return Scaling(search, request).run();
}

}  // namespace systole

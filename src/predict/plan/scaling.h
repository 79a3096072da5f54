#pragma once
// Scaling: how training speeds up with more of the same hardware, and at which size more no longer pays.
//
// Each size uses its fastest layout. Efficiency is tokens per second per chip, relative to the smallest size that fits.
// A larger size pays if its added chips are efficient: the tokens per second that it adds to the largest smaller size
// that pays, divided by what as many chips give there, are kPaying or more. The largest size that pays is where to
// stop.

#include "predict/plan/choice.h"

namespace systole {

constexpr double kPaying = 0.8;

struct ScaleRequest {
  std::vector<std::string> hardware;  // without a count: "h100", "h100@a3-edgegpu-8g", "a3-highgpu-8g", "v5p"
  std::vector<std::int64_t> sizes;    // chips
  bool batch_scales = false;          // the workload's batch is for the smallest size, and grows with the chips
};

struct ScalePoint {
  std::int64_t chips = 0, batch = 0;
  std::optional<ClusterOffer> offer;      // the fastest; where none fits, the nearest to fitting
  std::optional<Estimated> best;          // its offer is 0
  std::string refused;                    // why there is no best
  double tokens_per_second = 0;           // this and the rest are set where there is a best
  double efficiency = 1;                  // relative to the smallest size
  std::optional<double> added;            // efficiency of the chips beyond the largest smaller size that pays
  std::optional<Dollars> million_tokens;  // what they cost
};

struct ScaleCurve {
  std::string hardware;
  std::vector<ScalePoint> points;   // the smallest first
  std::optional<std::size_t> stop;  // nothing: no size fits
  std::string reason;               // "the step to 512 chips adds 61% of ..."
};

// The inputs of a search over sizes. Borrows.
struct ScaleSearch {
  CatalogTables& tables;
  const Catalog& catalog;
  const OfferRules& rules;
  const Composer& composer;  // of the workload as asked
  int threads = 2;
};

// One curve per hardware. Errors: invalid: a repeated size, a size below 1, or a hardware with a count; not_found: no
// such accelerator or machine. A size that does not exist is refused in its point.
Result<std::vector<ScaleCurve>> scale(const ScaleSearch& search, const ScaleRequest& request);

// Sets the efficiencies and where to stop, from each point's chips and tokens per second.
void judge(ScaleCurve& curve);

}  // namespace systole

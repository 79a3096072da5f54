#pragma once
// How far more of the same hardware makes training faster, and from where on it does not pay.
//
// Of each size the fastest layout is taken. Tokens a second of a chip, over those of the smallest size that fits, are
// its efficiency. What a size adds to the tokens a second of the largest smaller one that pays, over what as many chips
// gave there, is the efficiency of the chips that were added: kPaying of it or more pays, and the largest size that
// pays is where to stop.

#include "predict/plan/choice.h"

namespace systole {

constexpr double kPaying = 0.8;

struct ScaleRequest {
  std::vector<std::string> hardware;  // "h100", "h100@a3-edgegpu-8g", "a3-highgpu-8g", "v5p": without how many
  std::vector<std::int64_t> sizes;    // chips
  bool batch_scales = false;          // the workload's batch is that of the smallest size, and rows of a chip stay
};

struct ScalePoint {
  std::int64_t chips = 0, batch = 0;
  std::optional<PlannedOffer> offer;      // that is fastest; of those that do not fit the nearest
  std::optional<Estimated> best;          // its offer is 0
  std::string refused;                    // why there is none
  double tokens_per_second = 0;           // of the rest: where there is one
  double efficiency = 1;                  // against the smallest size
  std::optional<double> added;            // efficiency of its chips beyond the largest smaller size that pays
  std::optional<Dollars> million_tokens;  // what they cost
};

struct ScaleCurve {
  std::string hardware;
  std::vector<ScalePoint> points;   // the smallest first
  std::optional<std::size_t> stop;  // nothing: no size fits
  std::string reason;               // "the step to 512 chips adds 61% of ..."
};

// Where offers come from. Borrows.
struct ScaleSearch {
  CatalogTables& tables;
  const Catalog& catalog;
  const OfferRules& rules;
  const Composer& composer;  // of the workload as asked
  int threads = 2;
};

// A curve for each hardware. Errors: invalid: a size twice, below 1, or a hardware that says how many; not_found: no
// such accelerator or machine. A size that cannot be had is refused in its point.
Result<std::vector<ScaleCurve>> scale(const ScaleSearch& search, const ScaleRequest& request);

// The points' efficiencies and where to stop, from their chips and tokens a second.
void judge(ScaleCurve& curve);

}  // namespace systole

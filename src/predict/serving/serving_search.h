#pragma once
// Searches how a model is served: precisions of its parameters, and slots by doubling for as long as a device carries
// more. Each candidate is a plan (serving_plan.h), so it is played by the server's scheduler.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "predict/serving/serving_plan.h"

namespace systole {

// The precisions that are searched: of parameters, and of products where a device has a choice.
struct ServedPrecision {
  DType parameter, compute;
};
std::span<const ServedPrecision> served_precisions();

struct ServingAxes {
  bool precision = false, slots = false;
};

struct ServingCandidate {
  DType parameter = DType::f32, compute = DType::f32, cache = DType::f32;
  std::int64_t slots = 1;
  ServingRow row;
  bool best_of_device = false, best = false;  // fewest dollars for a token, then most tokens

  // "--set serve.parameter=bf16 …": what makes the workload this candidate's.
  std::string sets(const ServeSpec& asked) const;
};

struct ServingSearch {
  ServingPlan asked;  // of the workload as it is, with no rows
  std::vector<ServingCandidate>
      candidates;  // by device, those with the cheapest tokens first; then by precision, slots
  std::vector<std::pair<std::string, std::string>> left_out;  // precision or accelerator, and why
};

// Rows of a candidate's workload: this machine's, offers'.
using AddRows = std::function<Status(const Workload&, ServingPlanner&)>;

// Slots begin with the workload's. A precision that the model or a device does not have is left out. Errors: of the
// first candidate, if none has rows.
Result<ServingSearch> search_serving(const Workload& workload, const std::vector<ArrivingRequest>& trace,
                                     const ServingAxes& axes, const AddRows& add_rows);

std::string serving_search_text(const ServingSearch& search, int width);
Node serving_search_node(const ServingSearch& search);

}  // namespace systole

#pragma once
// The known error of a prediction for offered hardware: how far off predictions of its kind have been.

#include "ground/base/document.h"
#include "predict/perf/known_errors.h"
#include "predict/plan/search.h"

namespace systole {

struct PredictionKind {
  std::string stack, work, accelerator;  // as in KnownError; work "f32" has no published rows
};
PredictionKind prediction_kind(const Workload& workload, const HardwareOption& offered);

// `of`: "step_time" or "memory". Null: unknown.
const KnownError* known_error_of(const PredictionKind& kind, std::string_view of);
// " ± 8.3%", or "" where nothing is known.
std::string plus_minus(const KnownError* known);
// "mean error of 79 published rows of megatron-core on h100, fitted without their source; 90% lie within 11.9%"
std::string known_error_words(const PredictionKind& kind, const KnownError* known);
Node known_error_node(const PredictionKind& kind, const KnownError* known);

}  // namespace systole

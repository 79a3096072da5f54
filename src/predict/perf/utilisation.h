#pragma once
// One definition of utilisation: model FLOPs (6 per matmul parameter and token, and the causal half of attention;
// recomputation does not count) per second, as a fraction of a rate. Relative to a chip's dense peak of a type it is
// MFU; relative to a calibrated machine's measured matmul rate it is named after that rate. A figure above 100% means a
// wrong input: it is withheld, and the error names both inputs.

#include <string_view>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// `rate_is`: name of the rate, with its source: "measured matmul rate (bf16) of this-machine, 2026-11-21".
// Errors: invalid when time or rate is not above zero, or when the figure is above 1: it names both inputs.
Result<double> utilisation(Flops model, Seconds time, FlopRate rate, std::string_view rate_is);

}  // namespace systole

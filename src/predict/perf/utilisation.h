#pragma once
// One convention of utilisation: model FLOPs (6 per matmul parameter and token, and the causal half of attention;
// nothing done twice counts) over time, as a fraction of a rate. Against a calibrated machine's measured matmul rate it
// is called that; against a part's dense peak of a type it is MFU. A figure above 100% is a wrong input, so it is
// withheld with both named.

#include <string_view>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// `rate_is`: what the rate is, with its source: "measured matmul rate (bf16) of this-machine, 2026-11-21".
// Errors: invalid when time or rate is not above zero, or when the figure is above 1: it names both inputs.
Result<double> utilisation(Flops model, Seconds time, FlopRate rate, std::string_view rate_is);

}  // namespace systole

#pragma once
// Names and colours of the shares of step time.

#include "predict/perf/step_time.h"

namespace systole {

const char* words_of(StepShare share);      // "exposed: parameters (fsdp)"
const char* share_colour(StepShare share);  // "#0072B2"

}  // namespace systole

#pragma once
// A Plan as text: what will run, how long it will take, where time and memory go.

#include <string>

#include "describe/spec/plan.h"

namespace systole {

// `done`: steps that a resumed run has behind it; their time no longer counts.
std::string plan_text(const Plan& plan, std::int64_t done = 0);

}  // namespace systole

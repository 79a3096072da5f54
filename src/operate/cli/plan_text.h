#pragma once
// A Plan for people: what will run, how long it will take, where time and memory go.

#include <string>

#include "describe/spec/plan.h"

namespace systole::cli {

// `done`: steps of a run that goes on, whose time is no longer to be spent.
std::string plan_text(const Plan& plan, std::int64_t done = 0);

}  // namespace systole::cli

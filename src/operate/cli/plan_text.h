#pragma once
// A Plan for people: what will run, how long it will take, where time and memory go.

#include <string>

#include "describe/spec/plan.h"

namespace systole::cli {

std::string plan_text(const Plan& plan);

}  // namespace systole::cli

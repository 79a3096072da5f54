#pragma once
// A Program on two screens: the work of each function, its collectives with axis, bytes and algorithm, the schedules
// with repetitions folded, and memory by owner. to_text (program.h) prints everything.

#include <string>

#include "describe/program/program.h"

namespace systole {

std::string summary_of(const Program& program);

}  // namespace systole

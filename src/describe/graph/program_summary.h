#pragma once
// A Program on two screens: what each function does, every collective with its axis, bytes and algorithm, the schedules
// with their repetitions folded, and whose the memory is. Everything there is: to_text (program.h).

#include <string>

#include "describe/graph/program.h"

namespace systole {

std::string summary_of(const Program& program);

}  // namespace systole

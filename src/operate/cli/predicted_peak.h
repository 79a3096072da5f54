#pragma once
// What the compiler of a chip is predicted to need for a workload's step, beside what it then took: for `plan` and
// `run`.

#include <optional>
#include <string>

#include "describe/graph/program.h"

namespace systole::cli {

// A line for people. `chip`: its entry of the catalog. `temporaries`: the most that the compiler told of a function.
// Nothing where the training step is not one function, or where nothing is known of the compiler: of XLA's for this
// machine's cores.
std::optional<std::string> predicted_peak_text(const std::string& backend, const std::string& chip,
                                               const Program& program, Bytes temporaries);

}  // namespace systole::cli

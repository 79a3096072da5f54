#pragma once
// The memory that a chip's compiler is predicted to need for a training step, beside what it then used. Printed by
// `plan` and `run`.

#include <optional>
#include <string>

#include "describe/program/program.h"

namespace systole {

// A line of text. `chip`: name of its catalog entry. `temporaries`: the largest that the compiler reported for a
// function. Empty if the training step is not one function, or if the compiler is unknown, as XLA for CPUs is.
std::optional<std::string> predicted_peak_text(const std::string& backend, const std::string& chip,
                                               const Program& program, Bytes temporaries);

}  // namespace systole

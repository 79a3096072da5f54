#pragma once
// The sources of a mixture, as `data show`, `data build` and `plan` print them.

#include <optional>
#include <string>

#include "describe/spec/workload.h"
#include "execute/data/mixture.h"

namespace systole::cli {

// `steps`: of the run, exact or predicted; 0: unknown, and an epoch of the mixture is shown, or all of it.
std::string mixture_table(const Mixture& mixture, const Workload& workload, double steps, int width);
Node mixture_node(const Mixture& mixture, const Workload& workload, double steps);

}  // namespace systole::cli

#pragma once
// The sources of a mixture, as `data show`, `data build` and `plan` print them.

#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "execute/data/mixture.h"

namespace systole::cli {

// What is drawn of each source in the rows that are shown.
struct MixtureDrawing {
  std::int64_t rows = 0;
  bool of_run = false;
  std::vector<double> asked, drawn, epochs;
};

// `steps`: of the run, exact or predicted, at least one is shown; 0: unknown, and an epoch of the mixture is shown, or all
// of it.
MixtureDrawing drawing_of(const Mixture& mixture, const Workload& workload, double steps);

std::string mixture_table(const Mixture& mixture, const MixtureDrawing& drawing, const Workload& workload, int width);
Node mixture_node(const Mixture& mixture, const MixtureDrawing& drawing);

}  // namespace systole::cli

#pragma once
// Reports how a run ended.

#include <optional>
#include <string>

#include "execute/train/trainer.h"
#include "ground/base/document.h"
#include "operate/cli/command.h"

namespace systole::cli {

// `result`: the hash of its state, if requested. `again`: further arguments of `systole resume FOLDER`. `cache`: what
// data.cache met.
void tell_end(const TrainOutcome& outcome, const Workload& workload, const std::string& result,
              const std::string& folder, const std::string& again, Context& context,
              const std::optional<Node>& cache = {});

}  // namespace systole::cli

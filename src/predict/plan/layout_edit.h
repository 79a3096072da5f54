#pragma once
// A layout as what a person lays over the workload: `--set` takes each.

#include <string>
#include <vector>

#include "describe/spec/workload.h"

namespace systole {

// "mesh={fsdp: 8, model: 2}", "train.microbatches=4": what makes `asked` the workload `laid_out`, which differs from it
// in its layout alone. Empty: nothing differs.
std::vector<std::string> layout_sets(const Workload& asked, const Workload& laid_out);

}  // namespace systole

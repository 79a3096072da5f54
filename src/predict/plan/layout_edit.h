#pragma once
// A layout as edits of the workload, in the form that `--set` takes.

#include <string>
#include <vector>

#include "describe/spec/workload.h"

namespace systole {

// "mesh={fsdp: 8, model: 2}", "train.microbatches=4": the edits that turn `asked` into `laid_out`, which differs from
// it in its layout alone. Empty: they are equal.
std::vector<std::string> layout_sets(const Workload& asked, const Workload& laid_out);

}  // namespace systole

#pragma once
// Which meshes, stages and shardings a workload may ask for; part of what broken_rules looks over.

#include <vector>

#include "describe/spec/schema.h"

namespace systole {

std::vector<Broken> broken_layout_rules(const Workload& workload);

}  // namespace systole

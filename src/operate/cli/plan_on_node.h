#pragma once
// A plan for offered hardware as a document: what --json prints and --out writes.

#include "ground/base/document.h"
#include "operate/cli/plan_on.h"

namespace systole::cli {

Node offered_plan_node(const OfferedPlan& plan);

}  // namespace systole::cli

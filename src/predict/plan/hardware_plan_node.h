#pragma once
// A plan for offered hardware as a document: what --json prints and --out writes.

#include "ground/base/document.h"
#include "predict/plan/hardware_plan.h"

namespace systole {

// Parts of a plan's document that come from other modules.
struct PlanAdditions {
  Node quotas;        // of a project that creates the choice's nodes
  Node this_machine;  // null: not asked for, or it cannot train the workload
  Node feed;          // null: not rows of text
};
Node offered_plan_node(const HardwarePlan& plan, const PlanAdditions& beside);

}  // namespace systole

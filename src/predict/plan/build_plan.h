#pragma once
// Builds every Plan, for this machine and for offered hardware alike. The caller knows the machine, the times and the
// price; everything else is read from the Program here.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/program/program.h"
#include "describe/spec/plan.h"

namespace systole {

struct PlanParts {
  Workload workload;  // as it runs, with its mesh
  PlannedTarget target;
  std::string strategy;
  std::int64_t rank = 0;                       // the device of the mesh that runs the Program
  std::int64_t devices = 1;                    // that the plan covers
  std::int64_t parameters = 0, trainable = 0;  // of the whole model
  std::vector<PlannedShape> shapes;            // what is known of them, but for what the Program says
  PlannedMemory memory;                        // of that device
  PlannedTime time;
  std::optional<PlannedCost> cost;  // nothing: on this machine
  std::optional<PlannedFeed> feed;  // nothing: not rows of text
  double model_utilisation = 0;     // 0: unknown
  std::vector<PlannedLoser> lost;
};

// `made_by`: the version of Systole; `made_at`: ISO 8601 UTC. REQUIRES: the Program has the schedule "train".
Plan build_plan(PlanParts parts, const Program& program, std::string made_by, std::string made_at);

}  // namespace systole

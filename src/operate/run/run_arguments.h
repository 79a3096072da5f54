#pragma once
// The arguments of a run besides its workload.

#include <optional>
#include <string>

#include "describe/spec/plan.h"
#include "operate/run/budget.h"
#include "operate/run/rank_launch.h"

namespace systole {

struct RunArguments {
  std::string folder;
  std::string inject;
  std::string chaos;         // a hazard file
  std::string again;         // further arguments of `systole resume FOLDER`, as from machine_words
  std::string lock;          // lock file that the run is held to; empty: none
  std::optional<Plan> plan;  // plan that the run is held to
  RankArguments ranks;
  BudgetArguments budget;
  std::string metrics;  // address of the metrics server, [HOST:]PORT; empty: none
  std::string wait;     // how long to wait for another process that works on the run; empty: not at all
  bool in_process = false;
  bool dry_run = false, eager = false;
};

}  // namespace systole

#pragma once
// One row per run for every list and report, local or on a cluster. Local runs: from events and plan. Cluster runs:
// from the run's record, the cluster's job states, and the ledger.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/run.h"
#include "describe/spec/run_state.h"
#include "ground/base/units.h"

namespace systole {

struct Plan;

struct RunSummary {
  std::string run;       // its name: that of its folder, and of its submission
  std::string workload;  // the workload's name; empty: not known
  std::string target;    // the cluster's kind, such as "slurm"; empty: this machine
  std::string id;        // the target's own id; empty: none
  RunState state = RunState::unknown;
  std::string problem;                        // why it waits or failed; may be empty
  std::int64_t step = 0;                      // the last step in the canonical log
  std::optional<std::int64_t> of;             // planned steps; nothing: not known
  std::int64_t tokens = 0;                    // of all rows up to that step
  std::optional<double> loss, bits_per_byte;  // the latest: loss of a step, bits per byte of an evaluation
  std::string since;                          // ISO 8601 UTC: when its first process opened it, or it was submitted
  std::optional<Dollars> cost, budget;        // cost: so far; nothing: price unknown. budget: nothing: none
  std::optional<std::int64_t> exit_code;      // of its ranks; nothing: still running, or not known
  bool operator==(const RunSummary&) const = default;
};

// Summary of a local run; the caller sets its name and applies state_with. `processes`: events of each process, in the
// order in which they opened the run. `plan`: may be null.
RunSummary summarize(const std::vector<std::vector<Event>>& processes, const Plan* plan);

}  // namespace systole

#pragma once
// Compute time of one run of a step, by class of op: perf's prediction, compared with the compiler's schedule.

#include <optional>
#include <string>
#include <vector>

#include "predict/prove/job_on_slice.h"

namespace systole::prove {

struct ComputeLine {
  std::string name;  // of the class; "all": their sum; "unnamed": not from an op of Systole
  std::optional<Seconds> predicted, scheduled;
  std::optional<double> ratio() const;  // predicted to scheduled
};

// The sum first. `proof`: null: there is none. Empty: neither a prediction nor a schedule.
std::vector<ComputeLine> compute_lines(const JobOnSlice& job, const Proof* proof);

Node compute_node(const JobOnSlice& job, const Proof* proof);

}  // namespace systole::prove

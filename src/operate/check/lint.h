#pragma once
// What a workload may say but hardly means: things that are legal, would run, and that one would be sorry for. Errors
// are the spec's; these are warnings. Rules look at the workload alone, not at the machine or the files.

#include <optional>
#include <string>
#include <vector>

#include "describe/spec/workload.h"

namespace systole {

struct Lint {
  std::string rule;  // "no_held_out": stable, for scripts
  std::string key;   // "train.optimizer.decay"
  std::string text, hint;
};

// A batch that its parts (microbatches, logical shards, devices that cut it) do not divide: all parts have the same
// shape, and the rows that are missing are computed as empty ones. The numbers are right; time and memory are as of a
// larger batch.
std::optional<Lint> empty_rows(const Workload& workload);

// In the order of the rules; empty: nothing to say.
std::vector<Lint> lint(const Workload& workload);

}  // namespace systole

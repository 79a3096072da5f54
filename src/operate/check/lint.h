#pragma once
// Lint of a workload: legal settings that run, but are probably mistakes. Errors belong to the spec; these are
// warnings. Rules use only the workload, not the machine or the files.

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

// A batch size that is not divisible by its parts (microbatches, logical shards, devices that shard it). All parts have
// the same shape, so missing rows are padded. The numbers are right; time and memory are those of a larger batch.
std::optional<Lint> empty_rows(const Workload& workload);

// In the order of the rules; empty: no warnings.
std::vector<Lint> lint(const Workload& workload);

}  // namespace systole

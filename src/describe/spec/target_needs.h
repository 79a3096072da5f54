#pragma once
// What a workload asks of the target that runs it, as abilities of the target table, and the refusal of what the target
// lacks. `plan`, `render`, `submit` and `check` refuse the same.

#include <cstdint>
#include <string>
#include <vector>

#include "describe/spec/job_target_table.h"
#include "describe/spec/workload.h"
#include "ground/base/error.h"

namespace systole {

// A workload as a target would run it.
struct TargetUse {
  const Workload& workload;
  std::int64_t nodes = 1;     // at most
  bool tpus = false;          // its hardware is TPUs
  std::string hardware = {};  // its name: "v5e:4x4"; empty: none
};

// Whether its target is asked for machines on other terms than on demand. Machines that gcloud makes have the terms by
// which they are made, whatever starts the run on them.
bool asks_terms(const Workload& workload);

// One error for each ability that the use needs and the target lacks, with the reason, and the targets that have it.
// Kind: unsupported. Empty: the target can run it.
std::vector<Error> lacking(const JobTargetRow& target, const TargetUse& use);

// The error for an option of the command line that needs an ability which the target lacks. REQUIRES: it lacks it.
Error option_lacks(const JobTargetRow& target, JobTargetAbility JobTargetRow::*ability, const char* option,
                   const char* hint);

}  // namespace systole

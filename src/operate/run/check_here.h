#pragma once
// What `systole check` finds out of a workload without running it: its Program on a device that runs nothing, what it
// needs that this machine lacks, what render would refuse, and legal settings that are probably mistakes.

#include <cstdint>
#include <string>
#include <vector>

#include "execute/serve/engine.h"
#include "operate/check/lint.h"
#include "operate/run/render_job.h"
#include "operate/run/workload_arguments.h"

namespace systole {

struct CheckedWorkload {
  std::int64_t parameters = 0, trained = 0;
  EngineOptions engine = {};  // of one that serves, completed
  std::string target;         // of the device
  std::vector<Lint> warnings;
  std::vector<QuotaNote> quotas;
};

// Of workload: serve. Errors: those of its Program, its trace and its targets.
Result<CheckedWorkload> check_server(const WorkloadArguments& arguments, const LoadedWorkload& given, Clock& clock);
// Of one that trains. Errors: all of them at once.
Result<CheckedWorkload> check_training(const WorkloadArguments& arguments, const LoadedWorkload& loaded, Clock& clock);

}  // namespace systole

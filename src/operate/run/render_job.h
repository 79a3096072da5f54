#pragma once
// A workload as a target's files, which `render` writes and `submit` sends.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operate/render/render.h"
#include "operate/run/workload_arguments.h"

namespace systole {

struct RenderArguments {
  WorkloadArguments workload;
  std::string on, plan, run, base, accelerator;
};

struct RenderedJob {
  const JobTargetRow* target = nullptr;
  Workload workload;
  std::optional<Plan> plan;
  Rendered rendered;
  std::vector<std::string> storage;                          // what open volumes became; a line each
  std::vector<RenderedFile> sources;                         // workload.yaml and plan.json, as sent
  std::string workload_sha256, plan_sha256, program_sha256;  // the plan's is empty without a plan
};
// `place`: the folder of a run's files, as commands name it; `settle` decides what the workload leaves open. Throws the
// errors of render and of reading the workload or plan.
RenderedJob render_job(const RenderArguments& arguments, const char* command,
                       const std::function<std::string(const std::string& run)>& place,
                       const std::function<void(Workload&)>& settle = {});

// A limit that is lower in a new project than a workload's machines need, and how to raise it.
struct QuotaNote {
  std::string text, hint;
};

// What render would refuse of a workload, for each target that its keys name; without files or a plan. Returns the
// quotas that its machines need above a new project's default. Errors: all at once, each at its position.
Result<std::vector<QuotaNote>> check_targets(const LoadedWorkload& loaded, const std::string& environment);

}  // namespace systole

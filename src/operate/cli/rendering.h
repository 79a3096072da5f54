#pragma once
// A workload as a target's files: what render writes and submit sends.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operate/cli/options.h"
#include "operate/cli/workload_options.h"
#include "operate/render/render.h"

namespace systole::cli {

struct RenderArguments {
  WorkloadArguments workload;
  std::string on, plan, run, base, accelerator;
};
// `targets`: those that the command takes.
void add_render_arguments(Subcommand command, RenderArguments& arguments, const std::vector<std::string>& targets);
void add_image_arguments(Subcommand command, RenderArguments& arguments);  // of the target docker

struct RenderedJob {
  RenderTarget target = RenderTarget::slurm;
  Workload workload;
  std::optional<Plan> plan;
  Rendered rendered;
  std::vector<RenderedFile> sources;                         // workload.yaml and plan.json, as they travel
  std::string workload_sha256, plan_sha256, program_sha256;  // the plan's is empty without one
};
// `place`: the folder of the files of a run, as commands name it; `settle` decides what the workload leaves
// open. Throws what render and the reading of the workload or
// plan refuse.
RenderedJob render_job(const RenderArguments& arguments, const char* command,
                       const std::function<std::string(const std::string& run)>& place,
                       const std::function<void(Workload&)>& settle = {});

// A limit of which a new project has less than a workload's machines need, and how more is asked for.
struct QuotaNote {
  std::string text, hint;
};

// What render would refuse of a workload, of each target that its keys name; without the files, and without a plan.
// Returns what its machines need beyond the usual. Errors: all at once, each at its place.
Result<std::vector<QuotaNote>> check_targets(const LoadedWorkload& loaded, const std::string& environment);

}  // namespace systole::cli

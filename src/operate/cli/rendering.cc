#include "operate/cli/rendering.h"

#include <fmt/ranges.h>

namespace systole::cli {

void add_render_arguments(Subcommand command, RenderArguments& arguments, const std::vector<std::string>& targets) {
  arguments.workload.command = true;
  arguments.workload.machines = true;
  arguments.workload.serves = true;
  Option workload = command.add_option("workload", arguments.workload.path, "the workload's YAML file");
  Option plan = command.add_option("--plan", arguments.plan,
                                   "what a plan says: plan.json of `systole plan --out`, in place of a workload");
  plan.excludes(workload);
  plan.excludes(
      command.add_option("--env", arguments.workload.environment, "lay this environment of the workload over it"));
  command
      .add_option("--set", arguments.workload.sets,
                  "lay KEY=VALUE over the workload, of a plan train.seed or objective.budget; may be repeated")
      .take_all();
  command.add_option("--on", arguments.on, fmt::format("where: {}", fmt::join(targets, ", "))).required();
  command.add_option("--run", arguments.run, "what the run is called there; without: as the workload");
}

void add_image_arguments(Subcommand command, RenderArguments& arguments) {
  const std::string builders = fmt::format("{}", fmt::join(job_targets_that(&JobTargetRow::images), ", "));
  command.add_option("--base", arguments.base,
                     fmt::format("{}: the image that it is built on, NAME:TAG of the catalog's images", builders));
  command
      .add_option("--accelerator", arguments.accelerator,
                  fmt::format("{}: what the image is for; without: what the workload runs on", builders))
      .check(one_of({"cpu", "cuda", "tpu"}));
}

}  // namespace systole::cli

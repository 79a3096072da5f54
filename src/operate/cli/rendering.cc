#include "operate/cli/rendering.h"

#include <fmt/ranges.h>

#include "operate/run/held_plan.h"

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
  command.add_option("--on", arguments.on,
                     fmt::format("where: {}; without: what --plan is for", fmt::join(targets, ", ")));
  command.add_option("--run", arguments.run, "what the run is called there; without: as the workload");
}

void settle_target(RenderArguments& arguments, const char* command) {
  if (!arguments.on.empty()) return;
  const std::vector<std::string> planned =
      arguments.plan.empty() ? std::vector<std::string>() : targets_of(plan_in(arguments.plan).value());
  if (planned.size() == 1) {
    arguments.on = planned.front();
    return;
  }
  const std::string why = arguments.plan.empty() ? ""
                          : planned.empty()      ? ": the plan names no target"
                                                 : fmt::format(": the plan is for {}", fmt::join(planned, " or "));
  fail(error(ErrorKind::invalid, "systole {}: --on is required{}", command, why)
           .hinted(planned.empty() ? fmt::format("`systole {} --help` lists what it takes", command)
                                   : "--on " + planned.front()));
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

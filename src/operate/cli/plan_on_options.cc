// The options of `systole plan --on`.

#include <fmt/ranges.h>

#include "operate/cli/plan_on.h"

namespace systole::cli {

void add_plan_on_options(Subcommand command, PlanOnOptions& options) {
  Option on = command.add_option("--on", options.targets,
                                 "plan for hardware that is offered, not for this machine: h100:64, "
                                 "a3-highgpu-8g:8, v5p:4x4x4, v5p-128, v5p:4x4x4:2 "
                                 "(two slices), this (machine), any; several by commas; with them the target that is "
                                 "to run it: " +
                                     fmt::format("{}", fmt::join(job_targets_that(&JobTargetRow::jobs), ", ")));
  on.take_all();
  const auto add = [&](const char* name, auto& value, const std::string& help) {
    return command.add_option(name, value, help).needs(on);
  };
  add("--objective", options.objective,
      "fastest, cheapest, per-token (dollars), or front: all that nothing beats in both")
      .check(one_of({"fastest", "cheapest", "per-token", "front"}));
  add("--deadline", options.deadline, "all training is done within this time: 30d");
  add("--budget", options.budget, "and for no more dollars than this: 1M; without: objective.budget of the workload");
  add("--region", options.regions, "prices and machines of this region alone; may be repeated");
  add("--zone", options.zones, "of this zone alone; may be repeated");
  add("--chips-at-most", options.chips_at_most, "of one offer (default: 16384)").check(at_least(1));
  add("--stack", options.stack, "the software whose speed is assumed: megatron-core, maxtext, fsdp, ...");
  add("--precision", options.precision,
      "products in any of these: bf16,fp8,fp4; of a workload in f32 f32,tf32 (default: bf16, or f32). What is narrower "
      "is the stack's doing, and trains otherwise")
      .delimiter(',');
  add("--best", options.best, "so many layouts (default: 5)").check(at_least(1));
  add("--explain", options.explain, "an option that lost, by its number or name, beside the choice");
  add("--scale", options.scale,
      "so many chips each, beside each other, and where to stop: --on h100,v5p --scale 64,128,256")
      .delimiter(',')
      .check(at_least(1));
  command.add_flag("--scale-batch", options.scale_batch, "with --scale: rows of a chip stay, not those of a step")
      .needs("--scale");
  command
      .add_flag(
          "--prove{3}", options.prove,
          "let the vendor's compiler judge the best layouts, of --prove=5 five, without any device, one at a time: "
          "what does not fit loses; steps stay as predicted")
      .needs(on)
      .check(at_least(1));
  add("--charts", options.charts, "write charts into this folder, as SVG: front, time; with --scale scaling");
  command.add_flag("--all", options.all, "each offer by itself, and a hundred layouts").needs(on);
  command.add_flag("--exhaustive", options.exhaustive, "make every layout's Programs; the same answer, slowly")
      .needs(on);
  for (const char* name :
       {"--objective", "--deadline", "--budget", "--explain", "--all", "--exhaustive", "--best", "--out", "--prove"})
    command.option("--scale").excludes(command.option(name));
}

}  // namespace systole::cli

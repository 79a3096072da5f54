// `systole rank FOLDER`: one rank of a run, started by its agent with its place in the environment. Internal, so it is
// not listed.

#include "operate/cli/progress_lines.h"
#include "operate/cli/run_end.h"
#include "operate/cli/run_options.h"
#include "operate/cli/run_scene.h"
#include "operate/cli/workload_options.h"
#include "operate/run/rank_run.h"

namespace systole::cli {
namespace {

ExitCode rank(const RankRequest& options, Context& context) {
  std::optional<ProgressLines> lines;
  const RankViewers viewers{
      .data = [&](const Workload& workload) { return data_progress(workload, context); },
      .first =
          [&](const PlannedRun& prepared) {
            lines.emplace(context.out, prepared.plan, prepared.workload.observe.every);
            return viewers_of(*lines);
          },
      .ended =
          [&](const TrainOutcome& outcome, const Workload& workload) {
            context.out.end_progress();
            tell_end(outcome, workload, "", options.folder, "", context);
          },
  };
  return static_cast<ExitCode>(run_rank(options, viewers, scene_of(context)).value());
}

}  // namespace

void add_rank(Subcommand app, Context& context) {
  auto options = std::make_shared<RankRequest>();
  Subcommand command = add_command(app, "rank", "one rank of a run, started by its agent", options, context, rank);
  command.hidden();
  command.add_option("folder", options->folder, "the run's").required();
  command.add_option("--backend", options->backend, "cpu, or reference")
      .check(one_of({"cpu", "reference", "gpu", "tpu", "xla-cpu"}));
  command.add_option("--pin-isa", options->pin_isa, "as run --pin-isa");
  command.add_option("--memory", options->memory, "of all ranks of this node");
  command.add_option("--inject", options->inject, "as run --inject");
  command.add_option("--metrics", options->metrics, "as run --metrics");
  add_budget_arguments(command, options->budget);
}

}  // namespace systole::cli

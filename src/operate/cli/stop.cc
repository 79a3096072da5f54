// `systole stop RUN`: makes a run on a cluster save and end.

#include "operate/cli/run_scene.h"
#include "operate/runs/submitted_rows.h"

namespace systole::cli {
namespace {

struct StopOptions {
  std::string run;
  bool now = false, purge = false;
  double patience = 0;
};

ExitCode stop(const StopOptions& options, Context& context) {
  const std::unique_ptr<ClusterRun> run = cluster_run(options.run, follow_scene_of(context));
  StopRequest ask;
  ask.now = options.now;
  if (options.patience > 0) ask.patience = Seconds(options.patience);
  if (!options.now) context.out.message("asked to save and end; waiting for it");
  const RunStatus status = systole::stop(*run->cluster, run->record, ask, run->context()).value();
  Node node = run_node(run->record, status.as_one(), context.clock);
  context.out.data(fmt::format("{}: {}", run->record.run, describe_status(run->record, status.overall())));
  if (options.purge) {
    purge(*run->cluster, run->record, run->context(), options.now).value();
    context.out.data(fmt::format("nothing of it is left there; its results stay in {}", run->record.folder));
  }
  context.out.json(node.set("purged", options.purge));
  return status.overall().state == RunState::unknown ? ExitCode::no : ExitCode::done;
}

}  // namespace

void add_stop(Subcommand app, Context& context) {
  auto options = std::make_shared<StopOptions>();
  Subcommand command = add_command(app, "stop", "ask a run on a cluster to save and end", options, context, stop);
  command.add_option("run", options->run, "the run's name").required();
  command.add_flag("--now", options->now, "end it without saving");
  command.add_flag("--purge", options->purge, "then take away what submitting it made; its results stay");
  command.add_option("--patience", options->patience, "seconds to save in, then it is ended; without: 120")
      .check(positive());
}

}  // namespace systole::cli

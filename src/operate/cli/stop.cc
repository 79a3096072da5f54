// `systole stop RUN`: a run on a cluster saves and ends.

#include "operate/cli/cluster_runs.h"

namespace systole::cli {
namespace {

struct StopOptions {
  std::string run;
  bool now = false, purge = false;
  double patience = 0;
};

ExitCode stop(const StopOptions& options, Context& context) {
  const std::unique_ptr<ClusterRun> run = cluster_run(options.run, context);
  StopAsk ask;
  ask.now = options.now;
  if (options.patience > 0) ask.patience = Seconds(options.patience);
  if (!options.now) context.out.message("asked to save and end; waiting for it");
  const Seen seen = systole::stop(*run->cluster, run->record, ask, run->desk()).value();
  Node node = run_node(run->record, std::span(&seen, 1), context.clock);
  context.out.data(fmt::format("{}: {}", run->record.run, told(run->record, seen)));
  if (options.purge) {
    purge(*run->cluster, run->record, run->desk(), options.now).value();
    context.out.data(fmt::format("nothing of it is left there; its results stay in {}", run->record.folder));
  }
  context.out.json(node.set("purged", options.purge));
  return seen.phase == Phase::unknown ? ExitCode::no : ExitCode::done;
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

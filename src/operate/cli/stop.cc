// `systole stop RUN`: makes a run on a cluster, or one that a process of this machine leads, save and end.

#include <csignal>

#include "ground/base/files.h"
#include "ground/base/shell_quoted.h"
#include "ground/store/lock_holder.h"
#include "operate/cli/run_scene.h"
#include "operate/observe/index.h"
#include "operate/runs/submitted_rows.h"

namespace systole::cli {
namespace {

struct StopOptions {
  std::string run;
  bool now = false, purge = false;
  double patience = 0;
};

// Asks the process as Ctrl-C does: once to save and end, again to end at once.
void end_process(const LockHolder& process, const StopOptions& options, Context& context) {
  const Seconds usual = StopRequest().patience, patience = options.patience > 0 ? Seconds(options.patience) : usual;
  process.signal(SIGTERM).value();
  if (!options.now) {
    context.out.message(fmt::format("asked process {} to save and end; waiting for it", process.pid()));
    if (process.ends_within(patience)) return;
    context.out.message(fmt::format("it goes on after {}: asked to end without saving", to_string(patience)));
  }
  for (Seconds waited; waited < usual; waited += Seconds(0.1)) {  // two signals may arrive as one
    if (process.ends_within(Seconds(0.1))) return;
    process.signal(SIGTERM).value();
  }
  fail(error(ErrorKind::busy, "process {} does not end", process.pid())
           .hinted(fmt::format("kill -KILL {}; the run then goes on from its last checkpoint", process.pid())));
}

RunSummary summary_of(const std::string& folder) {
  const std::filesystem::path path(absolute_path(folder + "/.").value());
  const std::filesystem::path whole = path.parent_path();  // without the slash at its end
  const std::unique_ptr<Store> runs = open_posix_store(whole.parent_path().string()).value();
  RunSummary summary = summarize_run(*runs, whole.filename().string()).value().summary;
  summary.state = state_now(summary.state, folder);
  return summary;
}

// A run of this machine, in its folder.
ExitCode stop_here(const StopOptions& options, const std::string& folder, Context& context) {
  if (options.purge) {
    fail(error(ErrorKind::invalid, "--purge: the run '{}' is of this machine, and submitting it made nothing", folder)
             .hinted("leave --purge out"));
  }
  const std::optional<LockHolder> process = LockHolder::of(folder).value();
  if (process) end_process(*process, options, context);
  const RunSummary run = summary_of(folder);
  context.out.data(fmt::format("{}: {}, at step {}{}", folder, name_of(run.state), with_commas(run.step),
                               process ? "" : "; no process runs it"));
  if (run.state == RunState::stopped || run.state == RunState::killed)
    context.out.message("next: systole resume " + shell_word(folder));
  context.out.json(Node::map({{"run", folder},
                              {"state", name_of(run.state)},
                              {"step", run.step},
                              {"process", process ? Node(process->pid()) : Node()}}));
  return ExitCode::done;
}

ExitCode stop(const StopOptions& options, Context& context) {
  const FollowScene scene = follow_scene_of(context);
  std::unique_ptr<ClusterRun> run = cluster_run_if_any(options.run, scene);
  if (run == nullptr) {
    if (const Result<std::string> here = find_run(kRunsFolder, options.run); here.ok())
      return stop_here(options, *here, context);
    run = cluster_run(options.run, scene);  // which says what there is
  }
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
  Subcommand command =
      add_command(app, "stop", "ask a run, of this machine or on a cluster, to save and end", options, context, stop);
  command.add_option("run", options->run, "the run's name").required();
  command.add_flag("--now", options->now, "end it without saving");
  command.add_flag("--purge", options->purge, "then take away what submitting it made; its results stay");
  command.add_option("--patience", options->patience, "seconds to save in, then it is ended; without: 120")
      .check(positive());
}

}  // namespace systole::cli

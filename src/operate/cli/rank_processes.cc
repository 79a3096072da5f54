#include "operate/cli/rank_processes.h"

#include "execute/checkpoint/folder.h"
#include "execute/train/job.h"
#include "operate/cli/run_places.h"
#include "operate/launch/launch.h"

namespace systole::cli {
Result<ExitCode> run_in_processes(const RankProcesses& processes, const Prepared& prepared, const RunFolder& folder,
                                  SignalWatch& signals, Context& context) {
  const std::string logs = "ranks/logs";
  TRY(make_dirs_synced(*folder.store, logs));
  const checkpoint::Folder checkpoints{folder.store.get(), prepared.workload.checkpoint.folder,
                                       TRY(keys_of(prepared.workload.checkpoint))};
  TRY(checkpoint::prepare(checkpoints));
  LaunchOptions options = TRY(launch_options(processes.ranks, folder.path + "/" + logs, signals, context));
  options.run = folder.path;
  options.workload = numbers_hash(prepared.workload);
  options.command.argv = {"/proc/self/exe",
                          "rank",
                          folder.path,
                          "--backend",
                          processes.backend,
                          "--memory",
                          fmt::format("{}B", processes.memory.count())};
  if (!processes.inject.empty()) {
    options.command.argv.push_back("--inject");
    options.command.argv.push_back(processes.inject);
  }
  options.line = [&context](int rank, std::string_view line) {
    if (rank == 0) {
      context.out.data(std::string(line));
    } else {
      context.out.message(fmt::format("[rank {}] {}", rank, line));
    }
  };
  options.newest_checkpoint = [&checkpoints]() -> std::int64_t {
    const Result<std::vector<std::int64_t>> steps = checkpoint::list_steps(checkpoints);
    return steps.ok() && !steps->empty() ? steps->back() : -1;
  };
  const LaunchOutcome outcome = TRY(launch(std::move(options)));
  if (!outcome.sentence.empty()) context.out.message(outcome.sentence);
  return static_cast<ExitCode>(outcome.exit_code);
}

}  // namespace systole::cli

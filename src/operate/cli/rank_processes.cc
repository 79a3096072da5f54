#include "operate/cli/rank_processes.h"

#include <filesystem>
#include <limits>

#include "execute/checkpoint/folder.h"
#include "execute/train/job.h"
#include "ground/base/text_file.h"
#include "operate/cli/checkpoint_home.h"
#include "operate/cli/rank_watch.h"
#include "operate/cli/run_places.h"
#include "operate/launch/launch.h"

namespace systole::cli {
namespace {

Result<HazardModel> hazards_of(const std::string& path) { return read_hazards(TRY(read_text_file(path)), path); }

std::vector<std::string> rank_command(const RankProcesses& processes) {
  std::vector<std::string> argv{"/proc/self/exe",
                                "rank",
                                processes.folder,
                                "--backend",
                                processes.backend,
                                "--memory",
                                fmt::format("{}B", processes.memory.count())};
  if (!processes.pin_isa.empty()) argv.insert(argv.end(), {"--pin-isa", processes.pin_isa});
  if (!processes.inject.empty()) argv.insert(argv.end(), {"--inject", processes.inject});
  if (processes.budget_buys)
    argv.insert(argv.end(), {"--budget-time", fmt::format("{}s", processes.budget_buys->count())});
  if (!processes.metrics.empty()) argv.insert(argv.end(), {"--metrics", processes.metrics});
  if (!processes.ledger.empty()) argv.insert(argv.end(), {"--ledger", processes.ledger});
  return argv;
}

}  // namespace

Result<ExitCode> run_in_processes(const RankProcesses& processes, const Prepared& prepared, SignalWatch& signals,
                                  const PreemptionWatch& preemption, Context& context) {
  const std::string& folder = processes.folder;
  const bool alone = processes.ranks.rendezvous.empty();
  const std::string logs = folder + "/ranks/logs";
  std::optional<Chaos> chaos;
  LaunchOptions options = TRY(launch_options(processes.ranks, logs, signals, context));
  if (!processes.chaos.empty()) chaos.emplace(TRY(hazards_of(processes.chaos)), options.tell);
  if (alone) TRY(processes.take());
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);  // of several nodes' one may be there before the one that leads
  const std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  TRY(make_dirs_synced(*store, "ranks/logs"));
  // One that leads made the folder when it claimed the run's; one that follows may not see it, and looks only.
  const CheckpointHome home = TRY(checkpoint_home(*store, folder, prepared.workload.checkpoint, Absent::is_made));
  const checkpoint::Folder checkpoints{home.store, home.dir, TRY(keys_of(prepared.workload.checkpoint, home))};
  if (!options.token) options.token = TRY(RunToken::make());
  std::unique_ptr<RankWatch> watch;
  const std::uint64_t launch_id = options.token->mark();
  options.lead = [&, tell = options.tell]() -> Result<LaunchWatch*> {
    if (!alone) TRY(processes.take());
    TRY(checkpoint::prepare(checkpoints));
    watch = TRY(RankWatch::open(folder, launch_id, context.command_line, context.clock, tell));
    return watch.get();
  };
  options.run = folder;
  options.clock = &context.clock;
  options.workload = numbers_hash(prepared.workload);
  options.tls = prepared.workload.ranks.tls;
  options.command.argv = rank_command(processes);
  options.membership.notice = prepared.workload.ranks.notice.value_or(RanksSpec::kNotice);
  options.line = [&context](int rank, std::string_view line) {
    if (rank == 0) {
      context.out.data(std::string(line));
    } else {
      context.out.message(fmt::format("[rank {}] {}", rank, line));
    }
  };
  heed_preemption(options, preemption);
  heed_budget(options, processes.budget_is_used);  // rank 0 stops before that, unless something holds it up
  options.newest_checkpoint = [&checkpoints]() -> std::int64_t {
    const Result<std::vector<std::int64_t>> steps = checkpoint::list_steps(checkpoints);
    return steps.ok() && !steps->empty() ? steps->back() : -1;
  };
  if (chaos) {  // what the agent does to them is not the ranks' fault
    options.chaos = &*chaos;
    options.membership.failures_until_left_out = std::numeric_limits<int>::max();
    options.membership.restarts_per_hour = std::numeric_limits<int>::max();
  }
  const Result<LaunchOutcome> outcome = launch(std::move(options));
  if (watch != nullptr) {
    if (const Status written = watch->close(); !written.ok()) context.out.warning(written.error());
  }
  if (!outcome.ok()) return outcome.error();
  if (!outcome->sentence.empty()) context.out.message(outcome->sentence);
  return static_cast<ExitCode>(outcome->exit_code);
}

}  // namespace systole::cli

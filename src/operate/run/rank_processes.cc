#include "operate/run/rank_processes.h"

#include <filesystem>
#include <limits>
#include <optional>

#include "execute/checkpoint/folder.h"
#include "execute/train/training_job.h"
#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "operate/launch/launch.h"
#include "operate/observe/run_files.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/metrics_server.h"
#include "operate/run/rank_watch.h"

namespace systole {
namespace {

Result<HazardModel> hazards_of(const std::string& path) { return read_hazards(TRY(read_text_file(path)), path); }

std::vector<std::string> rank_command(const RequestedRun& run) {
  const RunArguments& arguments = run.arguments;
  std::vector<std::string> argv{"/proc/self/exe",
                                "rank",
                                arguments.folder,
                                "--backend",
                                run.preparing.backend,
                                "--memory",
                                fmt::format("{}B", run.of_node.count())};
  if (!run.preparing.pin_isa.empty()) argv.insert(argv.end(), {"--pin-isa", run.preparing.pin_isa});
  if (!arguments.inject.empty()) argv.insert(argv.end(), {"--inject", arguments.inject});
  if (run.budget_buys) argv.insert(argv.end(), {"--budget-time", fmt::format("{}s", run.budget_buys->count())});
  if (!arguments.metrics.empty()) argv.insert(argv.end(), {"--metrics", arguments.metrics});
  if (!arguments.budget.ledger.empty()) argv.insert(argv.end(), {"--ledger", arguments.budget.ledger});
  return argv;
}

// Claims the folder and writes what each rank reads at its start.
Status take_for_ranks(const RequestedRun& run, const PlannedRun& prepared, RunClaim& claim,
                      const RunMessages& messages) {
  const RunMetrics none;
  (void)TRY(serve_metrics(run.arguments.metrics, none));  // checks the address; rank 0 serves
  TRY(claim.take());
  RunFolder& folder = claim.folder();
  Workload kept = run.asked;
  kept.resume = prepared.workload.resume;
  TRY(write_whole(*folder.store, RunFiles::workload, to_yaml(kept)));
  if (!claim.goes_on())
    TRY(write_whole(*folder.store, RunFiles::plan, to_json(prepared.plan)));  // written last: its presence means that
                                                                              // there is a run
  const std::string& asked = run.arguments.ranks.ranks;
  messages.notice(fmt::format("{}: {} on {} of {}, {} planned for each", run.workload.name, folder.path,
                              run.count.said() && asked != "1" ? asked + " ranks" : counted(run.ranks, "rank"),
                              prepared.plan.target.name, to_string(prepared.memory.total())));
  return claim.begin_budget();
}

// Launch options of a run, set so that both the ranks of this node and their agent get them.
Result<LaunchOptions> options_of(const RequestedRun& run, const PlannedRun& prepared, SignalWatch& signals,
                                 const RunScene& scene) {
  RankArguments ranks = run.arguments.ranks;
  if (!run.count.said()) ranks.ranks = std::to_string(run.ranks);
  LaunchOptions options =
      TRY(launch_options(ranks, run.arguments.folder + "/ranks/logs", signals, scene.messages.message));
  if (!options.token) options.token = TRY(RunToken::make());
  options.run = run.arguments.folder;
  options.clock = &scene.clock;
  options.workload = numbers_hash(prepared.workload);
  options.tls = prepared.workload.ranks.tls;
  options.command.argv = rank_command(run);
  options.membership.notice = prepared.workload.ranks.notice.value_or(RanksSpec::kNotice);
  options.line = [&messages = scene.messages](int rank, std::string_view line) {
    if (rank == 0) {
      messages.line(std::string(line));
    } else {
      messages.message(fmt::format("[rank {}] {}", rank, line));
    }
  };
  return options;
}

// Failures that the agent injects do not count against the ranks.
void kill_by_chance(LaunchOptions& options, Chaos& chaos) {
  options.chaos = &chaos;
  options.membership.failures_until_left_out = std::numeric_limits<int>::max();
  options.membership.restarts_per_hour = std::numeric_limits<int>::max();
}

// Stops when the budget is used up. Rank 0 stops earlier, unless it hangs.
void heed_budget_of(LaunchOptions& options, const RequestedRun& run, RunClaim& claim) {
  if (!run.budget_buys) return;
  heed_budget(options, [&claim] { return claim.budget() != nullptr && claim.budget()->left() <= Seconds(); });
}

std::int64_t newest_in(const checkpoint::Folder& checkpoints) {
  const Result<std::vector<std::int64_t>> steps = checkpoint::list_steps(checkpoints);
  return steps.ok() && !steps->empty() ? steps->back() : -1;
}

}  // namespace

Result<int> run_in_processes(const RequestedRun& run, PlannedRun& prepared, RunClaim& claim, SignalWatch& signals,
                             const PreemptionWatch& preemption, const RunScene& scene) {
  const std::string& folder = run.arguments.folder;
  const bool alone = run.arguments.ranks.rendezvous.empty();
  std::optional<Chaos> chaos;
  LaunchOptions options = TRY(options_of(run, prepared, signals, scene));
  if (!run.arguments.chaos.empty()) chaos.emplace(TRY(hazards_of(run.arguments.chaos)), options.tell);
  if (alone) TRY(take_for_ranks(run, prepared, claim, scene.messages));
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);  // the leader of several nodes may have made it already
  const std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  TRY(make_dirs_synced(*store, "ranks/logs"));
  // The leader made the folder when it claimed the run's; a follower may not see it, and only looks.
  const CheckpointHome home = TRY(open_home(folder, prepared.workload.checkpoint, Absent::is_made));
  std::unique_ptr<RankWatch> watch;
  options.lead = [&, tell = options.tell, launch = options.token->mark()]() -> Result<LaunchWatch*> {
    if (!alone) TRY(take_for_ranks(run, prepared, claim, scene.messages));
    TRY(checkpoint::prepare(home.folder));
    watch = TRY(RankWatch::open(folder, launch, scene.command_line, scene.clock, tell));
    return watch.get();
  };
  heed_preemption(options, preemption);
  heed_budget_of(options, run, claim);
  options.newest_checkpoint = [&home] { return newest_in(home.folder); };
  if (chaos) kill_by_chance(options, *chaos);
  const Result<LaunchOutcome> outcome = launch(std::move(options));
  if (watch != nullptr)
    if (const Status written = watch->close(); !written.ok()) scene.messages.warning(written.error());
  if (!outcome.ok()) return outcome.error();
  if (!outcome->sentence.empty()) scene.messages.message(outcome->sentence);
  return outcome->exit_code;
}

}  // namespace systole

#include "operate/cli/run_command.h"

#include "ground/base/exit_code.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/run_end.h"
#include "operate/cli/run_scene.h"
#include "operate/run/data_told.h"
#include "operate/run/inject.h"
#include "operate/run/rank_processes.h"
#include "operate/run/run_end.h"
#include "operate/run/stop_watch.h"
#include "predict/plan/plan_text.h"

namespace systole::cli {
namespace {

void show_plan(const RequestedRun& run, const PlannedRun& prepared, Printer& out) {
  out.prose(plan_text(prepared.plan, step_begun_from(run, prepared)));
  if (out.json()) out.json(to_node(prepared.plan));
}

// Ends the run's interval in the ledger.
ExitCode ended(int exit_code, RunClaim& claim, SignalWatch& signals, const RunMessages& messages) {
  signals.end_is_known();
  if (const Status noted = claim.end(exit_code); !noted.ok()) messages.warning(noted.error());
  return static_cast<ExitCode>(exit_code);
}

// All devices are in this process. Returns the exit code.
int trained_here(const HereRun& run, const RunScene& scene, Context& context) {
  ProgressLines lines(context.out, run.prepared.plan, run.asked.workload.observe.every);
  const Result<HereOutcome> outcome = run_here(run, viewers_of(lines), scene);
  context.out.end_progress();
  const auto& [end, result] = outcome.value();
  const std::optional<CacheCounts> cache = cache_of(run.prepared.data);
  tell_end(end, run.prepared.workload, result, run.claim.folder().path, run.asked.arguments.again, context,
           cache ? std::optional(to_node(*cache)) : std::nullopt);
  const bool interrupted = end.ending == Ending::stopped && run.signals.signal() == SIGINT && !end.saved;
  return interrupted ? kExitInterrupted : exit_of(end);
}

}  // namespace

ExitCode run_workload(const Workload& workload, PrepareOptions preparing, const RunArguments& arguments,
                      ResumeMode begins, Context& context, std::optional<RunFolder> held) {
  const std::unique_ptr<Clock> wrong = injected_clock(arguments.inject, -1, context.clock).value();
  const RunScene scene = scene_of(context, wrong != nullptr ? *wrong : context.clock);
  enter_environment(workload, arguments.dry_run).value();
  RequestedRun run = settle_run(workload, std::move(preparing), arguments, begins).value();
  std::unique_ptr<Ring> spans;  // outlives the ledger
  TimeLedger ledger(scene.clock, Category::startup);
  SignalWatch signals;
  signals.end_at_once();  // preparing data, or waiting for another agent's, may take hours
  outlive_failed_writes();
  std::optional<RunClaim>
      claim;  // outlives `prepared`: a process that waits for the folder finds its memory and devices released
  PlannedRun prepared = prepare(run.workload, run.preparing, scene.clock, &ledger).value();
  context.out.end_progress();
  warn_of(run, prepared, scene.messages);
  check_prepared(run, prepared, scene.messages).value();
  if (arguments.dry_run) show_plan(run, prepared, context.out);
  fits(prepared).value();
  std::optional<Node> lock = lock_of_run(run, prepared).value();
  if (arguments.dry_run) return ExitCode::done;
  claim.emplace(run, prepared, scene, std::move(lock), std::move(held));
  const auto preemption = PreemptionWatch::start({run.workload.ranks.preemption}).value();
  const int exit_code =
      run.in_processes() ? run_in_processes(run, prepared, *claim, signals, *preemption, scene).value()
                         : trained_here({run, prepared, *claim, signals, *preemption, ledger, spans}, scene, context);
  return ended(exit_code, *claim, signals, scene.messages);
}

}  // namespace systole::cli

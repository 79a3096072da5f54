#include "operate/cli/run_command.h"

#include <csignal>

#include "ground/process/signal_watch.h"
#include "operate/cli/inject.h"
#include "operate/cli/plan_text.h"
#include "operate/cli/progress_lines.h"
#include "operate/cli/train_run.h"
#include "operate/observe/event_file.h"
#include "operate/observe/run_files.h"

namespace systole::cli {
namespace {

// Ctrl-C and SIGTERM end a run after the step at hand; a run that stopped with its state saved can go on.
ExitCode exit_of(const TrainOutcome& outcome) {
  switch (outcome.ending) {
    case Ending::finished: return ExitCode::done;
    case Ending::stopped: return outcome.saved ? ExitCode::saved : ExitCode::not_saved;
    case Ending::diverged: return ExitCode::no;
  }
  return ExitCode::no;
}

void tell_end(const TrainOutcome& outcome, const std::string& folder, Context& context) {
  Node fields = Node::map({{"folder", folder},
                           {"step", outcome.state.step},
                           {"tokens", outcome.state.tokens},
                           {"skipped", outcome.state.skipped},
                           {"saved", outcome.saved}});
  if (outcome.evaluation) {
    fields.set("held_out_loss", outcome.evaluation->loss);
    if (outcome.evaluation->bits_per_byte) fields.set("bits_per_byte", *outcome.evaluation->bits_per_byte);
  }
  const char* ending = outcome.ending == Ending::finished  ? "finished"
                       : outcome.ending == Ending::stopped ? "stopped"
                                                           : "diverged";
  fields.set("ending", ending);
  context.out.json(fields);
  std::string text =
      fmt::format("{} at step {}, {} tokens seen", ending, outcome.state.step, with_commas(outcome.state.tokens));
  if (outcome.evaluation && outcome.evaluation->bits_per_byte)
    text += fmt::format("; {:.4f} bits per byte on held-out text", *outcome.evaluation->bits_per_byte);
  context.out.data(text);
  if (!outcome.detail.empty()) context.out.data(outcome.detail);
  if (outcome.ending == Ending::stopped) {
    context.out.message("next: systole resume " + folder);
  } else if (outcome.ending == Ending::finished) {
    context.out.message("next: systole why " + folder);
  }
}

}  // namespace

void add_run_arguments(CLI::App& command, RunArguments& arguments) {
  command.add_option("--inject", arguments.inject,
                     "hold the run up on purpose: data=50ms@10,compute=20ms (places: data, compute, logging, "
                     "checkpoint); kill=PHASE@3 kills it");
  command.add_flag("--dry-run", arguments.dry_run, "plan and check all that can be checked, start nothing");
}

ExitCode run_workload(const Workload& workload, PrepareOptions preparing, const RunArguments& arguments, bool resume,
                      Context& context) {
  TimeLedger ledger(context.clock, Category::startup);
  SignalWatch signals;
  Prepared prepared = prepare(workload, preparing, context.clock).value();
  context.out.end_progress();
  if (arguments.dry_run) context.out.data(plan_text(prepared.plan));
  check_fit(prepared.job, prepared.memory, prepared.outside, prepared.plan.memory.limit, *prepared.machine.device)
      .value();
  if (arguments.dry_run) return ExitCode::done;
  RunFolder folder = claim_folder(arguments.folder, resume).value();
  RunRequest request;
  request.folder = folder.path;
  request.resume = resume;
  request.command = context.command_line;
  request.stop_requested = [&signals] { return signals.stop_requested(); };
  request.rejected = [&context](const checkpoint::Rejected& r) {
    context.out.warning(fmt::format("the checkpoint of step {} was passed over: {}", r.step, r.reason.message));
  };
  inject(arguments.inject, context.clock, request).value();

  ProgressLines lines(context.out, prepared.plan, workload.observe.every);
  const std::unique_ptr<EventFile> events =
      EventFile::open(*folder.store, next_event_file(*folder.store).value(), {.listener = [&lines](const Event& event) {
        lines.see(event);
      }}).value();
  context.out.message(fmt::format("{}: {} on {}, {} planned", workload.name, folder.path, prepared.plan.target.name,
                                  to_string(prepared.memory.total())));
  Result<TrainOutcome> outcome = run_job(prepared, folder, request, context.clock, ledger, *events);
  context.out.end_progress();
  for (const std::string& line : prepared.machine.device->kernels_used()) context.out.message("  " + line);
  const TrainOutcome& ended = outcome.value();
  tell_end(ended, folder.path, context);
  if (ended.ending == Ending::stopped && signals.signal() == SIGINT && !ended.saved) return ExitCode::interrupted;
  return exit_of(ended);
}

}  // namespace systole::cli

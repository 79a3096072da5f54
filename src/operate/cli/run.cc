// `systole run WORKLOAD`: plans, checks that it fits, trains, and writes everything to the run's folder.

#include "operate/cli/program_command.h"
#include "operate/cli/run_command.h"
#include "operate/cli/run_options.h"
#include "operate/cli/run_scene.h"
#include "operate/cli/workload_options.h"
#include "operate/run/fresh_run.h"
#include "operate/run/held_plan.h"
#include "operate/run/job_lock.h"
#include "operate/run/run_wait.h"

namespace systole::cli {
namespace {

struct RunOptions {
  WorkloadArguments workload;
  RunArguments run;
  std::string plan;
  bool locked = false, or_resume = false;
};

// The workload; with a plan it is the plan's, and only the seed and the budget may be overridden.
Result<LoadedWorkload> workload_to_run(const RunOptions& options, RunArguments& arguments) {
  if (options.plan.empty()) {
    if (!options.workload.path.empty()) return load_workload(options.workload);
    return error(ErrorKind::invalid, "run what?").hinted("systole run JOB.yaml, or systole run --plan plan.json");
  }
  arguments.plan = TRY(plan_in(options.plan));
  TRY(lay_over_plan(options.workload.sets, arguments.plan->workload));
  return LoadedWorkload{arguments.plan->workload, {}};
}

// They concern a model's training only.
Status refuse_training_options(const RunOptions& options) {
  const char* given = options.locked || !options.run.lock.empty() ? "--locked"
                      : !options.run.inject.empty()               ? "--inject"
                      : !options.run.chaos.empty()                ? "--chaos"
                      : options.run.in_process                    ? "--in-process"
                      : options.run.eager                         ? "--eager"
                      : !options.run.metrics.empty()              ? "--metrics"
                      : !options.workload.memory.empty()          ? "--memory"
                                                                  : nullptr;
  if (given == nullptr) return Done{};
  return error(ErrorKind::invalid, "{} means nothing for a program of your own (command)", given).hinted("take it out");
}

ExitCode run(const RunOptions& options, Context& context) {
  RunArguments arguments = options.run;
  check_names_a_run(arguments.folder).value();
  const LoadedWorkload loaded = workload_to_run(options, arguments).value();
  if (options.or_resume && arguments.folder.empty())
    fail(error(ErrorKind::invalid, "--or-resume: of which run?").hinted("--folder: the same each time it is begun"));
  if (!arguments.wait.empty() && arguments.folder.empty())
    fail(error(ErrorKind::invalid, "--wait: for which run?")
             .hinted("--folder: the one that the other process works in"));
  std::optional<ReservedRunName> taken;
  if (arguments.folder.empty() && arguments.dry_run) arguments.folder = fresh_folder(loaded.workload.name);
  if (arguments.folder.empty()) arguments.folder = taken.emplace(loaded.workload.name).folder();
  const ResumeMode begins = options.or_resume ? ResumeMode::either : ResumeMode::anew;
  if (!loaded.workload.command.empty()) refuse_training_options(options).value();
  std::optional<RunFolder> held = claim_in_turn(arguments, begins, scene_of(context)).value();
  if (!loaded.workload.command.empty()) return run_program(loaded.workload, arguments, context, std::move(held));
  if (options.locked && arguments.lock.empty()) arguments.lock = lock_path_of(options.workload.path).value();
  arguments.again = machine_words(options.workload);
  return run_workload(loaded.workload, prepare_options(options.workload, loaded, context).value(), arguments, begins,
                      context, std::move(held));
}

}  // namespace

void add_run(Subcommand app, Context& context) {
  auto options = std::make_shared<RunOptions>();
  Subcommand command = add_command(
      app, "run", "train: plan, check that it fits, go, save; or run a program on many ranks", options, context, run);
  options->workload.command = true;
  add_workload_arguments(command, options->workload);
  Option plan = command.add_option("--plan", options->plan,
                                   "run what a plan says: plan.json of `systole plan --out`, in place of a workload");
  command.option("workload").required(false).excludes(plan);
  plan.excludes(command.option("--env"));
  add_rank_arguments(command, options->run.ranks);
  add_budget_arguments(command, options->run.budget);
  command.add_option("--folder", options->run.folder, "the run's folder; without: runs/<name>-<n>");
  command.add_flag("--or-resume", options->or_resume,
                   "go on where the run in --folder stopped, if there is one: what a scheduler starts again and again");
  command.add_flag(
      "--locked", options->locked,
      "refuse whatever differs from the workload's lock (job.yaml's is job.lock), and print the hash of the "
      "result, which is the same for the same lock");
  plan.excludes("--locked");
  command.add_option("--lock", options->run.lock, "--locked, by another file: a lock.json that a run has left");
  add_run_arguments(command, options->run);
}

}  // namespace systole::cli

// `systole run WORKLOAD`: plans, checks that it fits, trains, and leaves everything in the run's folder.

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ground/base/files.h"
#include "operate/cli/held_plan.h"
#include "operate/cli/job_lock.h"
#include "operate/cli/rank_options.h"
#include "operate/cli/run_command.h"
#include "operate/cli/run_program.h"
#include "operate/cli/run_wait.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

struct RunOptions {
  WorkloadArguments workload;
  RunArguments run;
  std::string plan;
  bool locked = false, or_resume = false;
};

// The workload as the plan has it: of a plan, only the seed and the budget are laid over it.
Result<LoadedWorkload> workload_to_run(const RunOptions& options, RunArguments& arguments) {
  if (options.plan.empty()) {
    if (!options.workload.path.empty()) return load_workload(options.workload);
    return error(ErrorKind::invalid, "run what?").hinted("systole run JOB.yaml, or systole run --plan plan.json");
  }
  arguments.plan = TRY(plan_in(options.plan));
  TRY(lay_over_plan(options.workload.sets, arguments.plan->workload));
  return LoadedWorkload{arguments.plan->workload, {}};
}

std::string fresh_folder(const std::string& name) {
  const Result<std::unique_ptr<Store>> runs = open_posix_store(kRunsFolder);
  return std::string(kRunsFolder) + "/" + next_run_name(runs.ok() ? runs->get() : nullptr, name);
}

// A run's name, taken: of several that begin at once each has its own. Given back should nothing come of it.
class TakenName {
 public:
  explicit TakenName(const std::string& name) : folder_(fresh_folder(name)) {
    std::error_code failed;
    std::filesystem::create_directories(kRunsFolder, failed);
    constexpr int kTries = 1000;  // what cannot be made or listed is told by whoever claims it
    for (int tries = 0; tries < kTries && !failed; ++tries) {
      folder_ = fresh_folder(name);
      if (std::filesystem::create_directory(folder_, failed)) break;
    }
  }
  ~TakenName() {
    ::rmdir(folder_.c_str());  // empty ones alone
    ::rmdir(kRunsFolder);
  }
  TakenName(const TakenName&) = delete;
  TakenName& operator=(const TakenName&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

// They speak of a model's training.
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

// Of a run that begins: its folder is its name.
Status check_names_a_run(const std::string& folder) {
  std::filesystem::path path(folder);
  if (!path.has_filename()) path = path.parent_path();
  std::string name = path.filename().string();
  if (name.find('@') == name.npos || path_exists(folder + "/" + RunFiles::plan)) return Done{};
  std::ranges::replace(name, '@', '-');
  return error(ErrorKind::invalid, "--folder: '{}' cannot name a run: it has an '@', and NAME@STEP names a checkpoint",
               path.filename().string())
      .hinted("--folder " + shell_word(path.replace_filename(name).string()));
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
  std::optional<TakenName> taken;
  if (arguments.folder.empty() && arguments.dry_run) arguments.folder = fresh_folder(loaded.workload.name);
  if (arguments.folder.empty()) arguments.folder = taken.emplace(loaded.workload.name).folder();
  const Begins begins = options.or_resume ? Begins::either : Begins::anew;
  if (!loaded.workload.command.empty()) refuse_training_options(options).value();
  if (!arguments.wait.empty()) arguments.held = wait_for_folder(arguments, begins, context).value();
  if (!loaded.workload.command.empty()) return run_program(loaded.workload, arguments, context);
  if (options.locked && arguments.lock.empty()) arguments.lock = lock_path_of(options.workload.path).value();
  arguments.again = machine_words(options.workload);
  return run_workload(loaded.workload, prepare_options(options.workload, loaded, context).value(), arguments, begins,
                      context);
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

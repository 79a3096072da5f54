#pragma once
// What `run` and `resume` have in common: from a workload and a folder to an exit code.

#include <memory>
#include <string>

#include "describe/spec/plan.h"
#include "ground/net/text_server.h"
#include "ground/store/lock.h"
#include "operate/cli/budget.h"
#include "operate/cli/command.h"
#include "operate/cli/rank_options.h"
#include "operate/cli/train_run.h"
#include "operate/cli/workload_options.h"
#include "operate/observe/run_metrics.h"

namespace systole::cli {

struct RunArguments {
  std::string folder;
  std::string inject;
  std::string chaos;         // a hazard file
  std::string again;         // what `systole resume FOLDER` needs besides, as machine_words says it
  std::string lock;          // the file that the run is held to; empty: to none
  std::optional<Plan> plan;  // that the run is held to
  RankArguments ranks;
  BudgetArguments budget;
  std::string metrics;                       // where they are served, [HOST:]PORT; empty: nowhere
  std::string wait;                          // how long for another process that works on the run; empty: not at all
  std::shared_ptr<FileLock> held = nullptr;  // of the folder, where it was waited for
  bool in_process = false;
  bool dry_run = false, eager = false;
};

void add_run_arguments(Subcommand command, RunArguments& arguments);

// Serves a run's metrics at [HOST:]PORT, of loopback without a host; null where `at` is empty. Errors: invalid,
// not_found, busy (the port is in use), io.
Result<std::unique_ptr<TextServer>> serve_metrics(const std::string& at, const RunMetrics& metrics);

ExitCode run_workload(const Workload& workload, PrepareOptions preparing, const RunArguments& arguments, Begins begins,
                      Context& context);

}  // namespace systole::cli

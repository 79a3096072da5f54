#pragma once
// A run of a workload with `command`: the user's program on several ranks, under operate/launch. Systole does not see
// its steps; it records only that the program began, and how it ended.

#include <optional>
#include <string>

#include "describe/spec/workload.h"
#include "ground/process/signal_watch.h"
#include "operate/launch/launch.h"
#include "operate/run/run_arguments.h"
#include "operate/run/run_messages.h"
#include "operate/run/train_run.h"

namespace systole {

// A program, ready to launch.
struct RequestedProgram {
  LaunchOptions options;  // except the hooks at its start
  std::string ranks;      // "2 ranks", "2 to 8 ranks"
  std::string command;    // as typed in a shell
  std::int64_t machines = 1;
  std::optional<Seconds> budget_buys;  // machine time
};

// Logs go to arguments.folder/logs, one file per rank and generation. Errors: invalid, not_found (the program, the
// token).
Result<RequestedProgram> settle_program(const Workload& workload, const RunArguments& arguments, SignalWatch& signals,
                                        const RunScene& scene);

// Claims the folder and launches the program; then signals no longer end this process. `claimed`: the folder, if
// already claimed. Errors: those of claim_folder, RunBudget and launch; of the workload's secrets.
Result<LaunchOutcome> run_program(const Workload& workload, const RunArguments& arguments, RequestedProgram program,
                                  SignalWatch& signals, const RunScene& scene, std::optional<RunFolder> claimed = {});

}  // namespace systole

#pragma once
// The options of `systole batch` for a job with a schedule: when it is due, and running it then.

#include <functional>
#include <string>

#include "ground/process/signal_watch.h"
#include "operate/cli/command.h"

namespace systole::cli {

struct BatchScheduleOptions {
  int next = 0;
  bool due = false, on_schedule = false;
  std::string at;

  bool any() const { return next > 0 || due || on_schedule; }
};
// Returns the ones that run the job.
std::vector<Option> add_schedule_options(Subcommand command, BatchScheduleOptions& options);

// Runs the job with this output. Throws its errors. ExitCode::saved: asked to stop.
using RunBatch = std::function<ExitCode(const std::string& output, const SignalWatch& watch)>;
// REQUIRES: options.any(). `job`: its file.
ExitCode run_scheduled(const BatchScheduleOptions& options, const std::string& job, const RunBatch& run,
                       Context& context);

}  // namespace systole::cli

#pragma once
// What the jobs of a run on a cluster write.

#include <cstdint>

#include "operate/cli/cluster_runs.h"

namespace systole::cli {

struct OutputOptions {
  bool follow = false;    // until the run is over
  std::int64_t last = 0;  // lines to begin with; 0: all
  bool all = false;       // of each machine of its jobs, which the line begins with
};
// Of several jobs each line begins with its job. What keeps its cluster from being asked or read for a while is said,
// and it goes on where it was, without a line twice; one whose state is unknown for a minute is no longer followed.
// Ends with `no` where the run was followed and did not come to its end.
ExitCode show_output(ClusterRun& run, const OutputOptions& options, Context& context);

}  // namespace systole::cli

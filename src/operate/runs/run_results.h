#pragma once
// The results of a run on a cluster: its folders, copied to this machine, and the checkpoints in them.

#include <string>
#include <vector>

#include "operate/runs/submitted_runs.h"

namespace systole {

// As the run names them. A task of an array has its own folder; only targets with shared folders have arrays.
std::vector<std::string> result_folders(const ClusterRun& run);

// The path of such a folder on this machine. Copies it first if requested or needed: to `out`, by default to the run's
// name in the folder `runs`. The copy is all or nothing. Throws not_found, exists, io, and errors of the cluster.
std::string bring_results(const ClusterRun& run, const std::string& folder, const std::string& out,
                          const std::string& runs);

// Describes the newest checkpoint in the folder, after verifying all its bytes against their digests: "checkpoint of
// step 40, verified"; "" without any. Throws if it cannot be read.
std::string verified_checkpoint(const std::string& folder);

}  // namespace systole

#pragma once
// job.sbatch and the files beside it.

#include "operate/render/cluster_job.h"

namespace systole {

// Errors: unsupported, invalid: what Slurm does not have, or sbatch does not accept.
Result<Rendered> render_slurm(const RenderRequest& ask, const ClusterJob& job);

// The head of a batch script: its options, and the variables of its files, folder, token and port. `signalled`: who
// gets TERM before the end; empty: the job's steps, "B:": the script alone. Errors: invalid: what sbatch does not
// accept.
Result<std::string> batch_head(const RenderRequest& ask, const Workload& w, const ClusterJob& job,
                               const char* signalled);

}  // namespace systole

#pragma once
// job.sbatch and the files beside it.

#include "operate/render/cluster_job.h"

namespace systole {

// Errors: unsupported, invalid: what Slurm does not have, or sbatch does not accept.
Result<Rendered> render_slurm(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole

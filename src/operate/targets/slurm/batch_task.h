#pragma once
// A job of `systole batch` on Slurm: job.sbatch, and with a schedule `scrontab`, an entry that starts it at its times.

#include "operate/render/cluster_job.h"

namespace systole {

// REQUIRES: ask.batch. Errors: as of render_slurm.
Result<Rendered> render_slurm_batch(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole

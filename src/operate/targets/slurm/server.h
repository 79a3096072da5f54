#pragma once
// serve.sbatch, of workload: serve: a job of one machine that serves a model until it is stopped.

#include "operate/render/cluster_job.h"

namespace systole {

// REQUIRES: job.replicas. Errors: as of render_slurm.
Result<Rendered> render_slurm_server(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole

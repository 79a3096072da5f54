#pragma once
// Slurm, by its own programs: sbatch, squeue, scancel, srun. Each is given a minute. Nothing of Slurm's accounting is
// needed: what a job came to is in the run's ledger once Slurm has forgotten it (MinJobAge).

#include <memory>

#include "operate/cluster/cluster.h"

namespace systole {

// Errors: not_found, without its programs in PATH.
Result<std::unique_ptr<ClusterClient>> open_slurm();

}  // namespace systole

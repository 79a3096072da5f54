#pragma once
// Slurm, by its own programs: sbatch, squeue, scancel, srun. Each has a time limit of a minute. Slurm's accounting is
// not needed: once Slurm has forgotten a job (MinJobAge), its outcome is in the run's ledger.

#include <memory>

#include "operate/cluster/cluster.h"

namespace systole {

// Errors: not_found, its programs are not in PATH.
Result<std::unique_ptr<ClusterClient>> open_slurm();

}  // namespace systole

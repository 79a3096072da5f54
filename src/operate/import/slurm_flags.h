#pragma once
// The import of sbatch's and srun's options.

#include <span>

#include "operate/import/flags.h"

namespace systole {

std::span<const Flag> sbatch_flags();
std::span<const Flag> srun_flags();  // those that sbatch does not have

// A Slurm time limit, such as 1-02:30:00 or minutes, becomes resources.longest.
void read_time_limit(Draft& draft, const FlagValue& value);

}  // namespace systole

#pragma once
// What becomes of the options of sbatch and srun.

#include <span>

#include "operate/import/flags.h"

namespace systole {

std::span<const Flag> sbatch_flags();
std::span<const Flag> srun_flags();  // those that sbatch has not

}  // namespace systole

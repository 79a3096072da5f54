#include "execute/backends/cpu/kernels/team.h"

#include <omp.h>

#include "execute/backends/cpu/kernels/team_cores.h"

namespace systole::cpu {

void run_parts(int threads, std::int64_t parts, Schedule schedule, void (*part)(void*, std::int64_t, int),
               void* context) {
  if (threads <= 1 || parts <= 1) {
    for (std::int64_t i = 0; i < parts; ++i) part(context, i, 0);
    return;
  }
  // Always the whole team: with a smaller one libgomp ends the other threads, and recreates them for the next region.
  const TeamCores* cores = team_cores();
#pragma omp parallel num_threads(threads)
  {
    // The runtime may give fewer threads than asked for.
    const std::int64_t n = omp_get_num_threads();
    const int me = omp_get_thread_num();
    if (me > 0) hold_to_core(cores, me);
    if (schedule == Schedule::contiguous) {
      for (std::int64_t i = parts * me / n, end = parts * (me + 1) / n; i < end; ++i) part(context, i, me);
    } else {
      for (std::int64_t i = me; i < parts; i += n) part(context, i, me);
    }
  }
}

void use_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace systole::cpu

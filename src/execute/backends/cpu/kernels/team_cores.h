#pragma once
// Thread affinity: pins each thread of a team to its own core. Threads that the system migrates lose their caches, and
// two of a team on one core delay all the others. Threads are pinned only if the team is as large as the set of cores
// that the process may use: with a smaller team, some could be pinned to a busy core beside an idle one. No thread is
// pinned if OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY make OpenMP do it, or if the caller may not use all of those
// cores.
//
// The caller of a team's regions is one of its threads, and creates other threads (prefetching, checkpoints, events)
// that inherit its cores. So it is pinned only while a HeldToCores exists, around kernels, which create no threads. The
// other threads of the team create none, and stay pinned.
//
// Measured on two virtual cores of an Intel Xeon (Sapphire Rapids) without AMX, 2026-11-21, alternating a pinned device
// and one that is not, 280 pairs of steps of the quickstart: 138.5 and 138.4 ms, median ratio of the pairs 1.00. Beside
// a process that never sleeps, two times 20 to 25 pairs: 342 and 313 ms, ratios 1.00 and 1.10. So on two cores pinning
// has no effect if they are otherwise idle, and costs time if they are shared; OMP_PROC_BIND=false turns it off. It is
// for larger teams. Pinning the caller takes about 4 us, so short calls skip it.

#include <sched.h>

#include <vector>

namespace systole::cpu {

class TeamCores {
 public:
  explicit TeamCores(int threads);  // for a team of `threads`, on the cores that the calling thread may use
  bool hold() const { return !cores_.empty(); }

 private:
  friend class HeldToCores;
  friend void hold_to_core(const TeamCores* cores, int thread);
  std::vector<int> cores_;  // by thread of the team; empty: not pinned
  cpu_set_t all_{};
};

// Pins the team that the calling thread opens, and, if `caller_too`, the thread itself, which takes a few microseconds.
// Borrows the cores. One per thread at a time.
class HeldToCores {
 public:
  HeldToCores(const TeamCores& cores, bool caller_too);
  ~HeldToCores();
  HeldToCores(const HeldToCores&) = delete;
  HeldToCores& operator=(const HeldToCores&) = delete;

 private:
  const TeamCores* cores_ = nullptr;  // cores of the pinned caller; null: it is not pinned
};

// Lets the calling thread run on the cores of all of OpenMP's places, if there are any.
void use_all_places();

// The cores of the calling thread's team; null: not pinned.
const TeamCores* team_cores();
// For the threads of a team except its caller, at the start of a region: pins `thread`, or unpins it if `cores` is
// null.
void hold_to_core(const TeamCores* cores, int thread);

}  // namespace systole::cpu

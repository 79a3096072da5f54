#pragma once
// A core for each thread of a team. Threads that the system moves leave their caches behind, and two of a team on one
// core make all the others wait. So each is held to a core of its own, where the team is as large as the cores that the
// process may run on: of fewer, some could be held to a core that is busy beside one that is not. Nobody is held when
// OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY ask OpenMP for it, or when the caller may not run on all those cores.
//
// The caller of a team's regions is one of its threads, and makes others (rows ahead, checkpoints, events) that inherit
// its cores. So it is held only while a HeldToCores lives, around kernels, inside of which nobody makes threads. The
// others of the team make none, and stay on theirs.
//
// Measured on two virtual cores of an Intel Xeon (Sapphire Rapids) without AMX, 2026-11-21, a device that is held and
// one that is not in turns, 280 pairs of steps of the quickstart: 138.5 and 138.4 ms, the pairs' median ratio 1.00.
// Beside a process that never sleeps, two times 20 to 25 pairs: 342 and 313 ms, ratios 1.00 and 1.10. So it neither
// helps nor harms on two cores that are one's own and costs beside others, where OMP_PROC_BIND=false leaves it out; the
// teams that it is for are larger. The caller's part takes some 4 us, which short calls are spared.

#include <sched.h>

#include <vector>

namespace systole::cpu {

class TeamCores {
 public:
  explicit TeamCores(int threads);  // of a team of so many, on the cores that the calling thread may run on
  bool hold() const { return !cores_.empty(); }

 private:
  friend class HeldToCores;
  friend void hold_to_core(const TeamCores* cores, int thread);
  std::vector<int> cores_;  // by thread of the team; empty: nobody is held
  cpu_set_t all_{};
};

// Holds the team that the calling thread opens, and the thread itself where `caller_too`: it takes a few microseconds.
// Borrows the cores. A thread has one at a time.
class HeldToCores {
 public:
  HeldToCores(const TeamCores& cores, bool caller_too);
  ~HeldToCores();
  HeldToCores(const HeldToCores&) = delete;
  HeldToCores& operator=(const HeldToCores&) = delete;

 private:
  const TeamCores* cores_ = nullptr;  // where the caller is held; null: it is not
};

// Lets the calling thread run on the cores of all of OpenMP's places, if there are any.
void use_all_places();

// Where the calling thread's team is held; null: nowhere.
const TeamCores* team_cores();
// For the threads of a team but its caller, at the begin of a region: where `thread` is to be from now on.
void hold_to_core(const TeamCores* cores, int thread);

}  // namespace systole::cpu

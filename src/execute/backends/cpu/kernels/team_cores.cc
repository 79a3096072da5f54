#include "execute/backends/cpu/kernels/team_cores.h"

#include <omp.h>

#include <cstdlib>

namespace systole::cpu {
namespace {

thread_local const TeamCores* held_team = nullptr;    // of a caller: the team that it has pinned
thread_local const TeamCores* formed_team = nullptr;  // of a caller: the last pinned team it created
thread_local int held_core = -1;                      // of the other threads: their core, or -1
thread_local cpu_set_t free_cores;                    // of the other threads: their cores when not pinned

bool openmp_is_asked() {
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

void run_on(const cpu_set_t& cores) { sched_setaffinity(0, sizeof cores, &cores); }

void run_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  run_on(one);
}

}  // namespace

TeamCores::TeamCores(int threads) {
  CPU_ZERO(&all_);
  if (threads < 2 || openmp_is_asked() || sched_getaffinity(0, sizeof all_, &all_) != 0) return;
  if (CPU_COUNT(&all_) != threads) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &all_)) cores_.push_back(core);
  }
}

HeldToCores::HeldToCores(const TeamCores& cores, bool caller_too) {
  if (!cores.hold()) return;
  held_team = &cores;
  cpu_set_t now;
  CPU_ZERO(&now);
  if (!caller_too || sched_getaffinity(0, sizeof now, &now) != 0 || !CPU_EQUAL(&now, &cores.all_)) return;
  cores_ = &cores;
  if (formed_team != &cores) {
    // If oneDNN created the team first, it would inherit the caller's one core. So create and pin it here.
#pragma omp parallel num_threads(static_cast <int>(cores.cores_.size()))
    {
      if (omp_get_thread_num() > 0) hold_to_core(&cores, omp_get_thread_num());
    }
    formed_team = &cores;
  }
  run_on(cores.cores_[0]);
}

HeldToCores::~HeldToCores() {
  held_team = nullptr;
  if (cores_ != nullptr) run_on(cores_->all_);
}

void use_all_places() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> cores(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, cores.data());
    for (const int core : cores) {
      if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &all);
    }
  }
  if (CPU_COUNT(&all) > 0) run_on(all);
}

const TeamCores* team_cores() { return held_team; }

void hold_to_core(const TeamCores* cores, int thread) {
  const auto place = static_cast<std::size_t>(thread);
  const int core = cores != nullptr && place < cores->cores_.size() ? cores->cores_[place] : -1;
  if (core == held_core) return;
  if (core < 0) {
    run_on(free_cores);
  } else {
    free_cores = cores->all_;
    run_on(core);
  }
  held_core = core;
}

}  // namespace systole::cpu

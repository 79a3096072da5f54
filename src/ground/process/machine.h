#pragma once
// What this process may use of its machine: the cores and memory that affinity and control groups (version 1 and 2)
// leave it, and what it uses. In a container these are far less than what the machine has.

#include <optional>
#include <string>

#include "ground/base/units.h"

namespace systole {

// Where the kernel tells; tests give folders of their own.
struct MachineFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// Cores this process may keep busy: those its affinity allows, at most the quota of its control groups, rounded up to
// whole ones; at least 1.
int allowed_cores(const MachineFiles& files = {});
// The quota alone, in cores (1.5 is one and a half), when there is one.
std::optional<double> cgroup_cores(const MachineFiles& files = {});

Bytes physical_memory(const MachineFiles& files = {});
// The lowest limit among this process's control groups, when there is one.
std::optional<Bytes> cgroup_memory(const MachineFiles& files = {});
// The smaller of the two: what the process can hold at most.
Bytes memory_limit(const MachineFiles& files = {});
// What could be allocated now without swapping, by the machine's own estimate (MemAvailable).
Bytes available_memory(const MachineFiles& files = {});

Bytes page_size();
Bytes resident_memory();       // of this process, now. Allocates nothing
Bytes peak_resident_memory();  // its high-water mark

// Stopped by a signal or held by a debugger; false where there is no such process, or none may look.
bool is_stopped_process(std::int64_t process);

std::string host_name();
std::string processor_name(const MachineFiles& files = {});  // "AMD EPYC 9B14"; "unknown processor" where none is told

}  // namespace systole

#pragma once
// The resources that this process may use: cores and memory within its affinity and control groups (version 1 and 2),
// and its current use. In a container these are far less than the machine has.

#include <optional>
#include <string>

#include "ground/base/units.h"

namespace systole {

// The kernel's folders; tests pass their own.
struct MachineFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// Number of cores this process may keep busy: its affinity, limited by the quota of its control groups, rounded up; at
// least 1.
int allowed_cores(const MachineFiles& files = {});
// The quota alone, in cores (1.5 is one and a half); nothing if there is none.
std::optional<double> cgroup_cores(const MachineFiles& files = {});

Bytes physical_memory(const MachineFiles& files = {});
// The lowest limit of this process's control groups; nothing if there is none.
std::optional<Bytes> cgroup_memory(const MachineFiles& files = {});
// The smaller of the machine's memory and that limit: an upper bound for the process.
Bytes memory_limit(const MachineFiles& files = {});
// Memory that could be allocated now without swapping, by the kernel's estimate (MemAvailable).
Bytes available_memory(const MachineFiles& files = {});

Bytes page_size();
Bytes resident_memory();       // of this process, now; allocates nothing
Bytes peak_resident_memory();  // the maximum so far
// How long ago this process was started, before exec, to some 5 ms; 0 if the kernel does not tell.
Seconds process_age();

// Whether a process is stopped by a signal or held by a debugger; false if it does not exist or cannot be inspected.
bool is_stopped_process(std::int64_t process);

// A connection is an open file, and the usual limit of a shell is 1,024: takes as many as the system allows.
void raise_open_files();

std::string host_name();
std::string processor_name(const MachineFiles& files = {});  // "AMD EPYC 9B14"; "unknown processor" if unavailable

}  // namespace systole

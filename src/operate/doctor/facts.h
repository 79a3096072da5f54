#pragma once
// The facts that `doctor` judges: this machine, as this process may use it. Kernel files are read below roots that
// tests replace by their own folders; facts without a file come from a System, which tests fake.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/process/machine.h"

namespace systole {

// The drift between the steady and the calendar clock, and whether the latter is synchronised.
struct ClockFacts {
  double drift = 0;                  // relative: 1e-4 is 100 ppm
  std::optional<bool> synchronised;  // nothing: unknown
};

struct SpaceFacts {
  Bytes free, total;
  bool operator==(const SpaceFacts&) const = default;
};

enum class Limit { open_files, locked_memory, core_size, address_space };

class System {
 public:
  virtual ~System() = default;
  virtual std::optional<SpaceFacts> space(const std::string& folder) = 0;
  // The soft limit; nothing: unlimited.
  virtual std::optional<std::int64_t> limit(Limit which) = 0;
  virtual ClockFacts clock() = 0;
  virtual bool tiles_allowed() = 0;  // whether the kernel lets a process use AMX
  // The median time of several block writes with fsync. Errors: io, no_space.
  virtual Result<Seconds> sync_time(const std::string& folder) = 0;
};

std::unique_ptr<System> this_system();

struct MachineRoots {
  MachineFiles files;
  std::string sys = "/sys", shared_memory = "/dev/shm", folder = ".";  // folder: of the runs
};

// Facts that other folders collect and doctor judges.
struct LibraryFacts {
  std::string name;            // "oneDNN"
  std::optional<Error> error;  // why it cannot be loaded
};
struct CalibrationFacts {
  std::string entry, date;     // the catalog entry that plans use; date of a calibration
  bool calibrated = false;     // on this machine
  std::optional<Error> stale;  // why an existing calibration is not used
  std::optional<BytesPerSecond> disk_write, disk_read;
};

struct MachineFacts {
  std::string processor;
  int cores = 1, machine_cores = 1;  // of this process; of the machine
  std::optional<double> quota;       // control group limit, in cores
  double load = 0;                   // runnable processes, over the last minute
  std::vector<std::string> flags;    // from /proc/cpuinfo
  bool tiles_allowed = false;
  std::optional<std::string> governor;
  Bytes memory, available;
  std::optional<Bytes> memory_group;
  bool strict_overcommit = false;
  std::optional<std::string> huge_pages;  // "madvise"; nothing: not supported by the kernel
  std::optional<SpaceFacts> disk, shared_memory;
  std::optional<Seconds> sync_time;
  std::optional<Error> sync_error;
  ClockFacts clock;
  std::optional<std::int64_t> open_files, locked_memory, core_size, address_space;  // nothing: unlimited

  bool has(std::string_view flag) const;
};

MachineFacts read_facts(const MachineRoots& roots, System& system);

}  // namespace systole

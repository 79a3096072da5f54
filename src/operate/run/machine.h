#pragma once
// This machine as commands use it: its device, its catalog entry, the link speed between its ranks, and the instruction
// set that it is pinned to.

#include <memory>
#include <optional>
#include <string>

#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/backends/xla/xla.h"
#include "ground/base/clock.h"
#include "ground/catalog/catalog.h"
#include "predict/perf/estimate.h"

namespace systole {

// The link between ranks, and the source of the numbers.
struct RanksLink {
  LinkCost cost;
  std::string source;
};

// This machine: the device, and its speed from the catalog.
struct Machine {
  std::unique_ptr<Device> device;
  std::string identity;        // a calibration is valid only for the same identity
  std::string isa;             // instructions that the results' bits depend on, "avx512/avx512-bf16"; empty: none
  std::string numerics;        // all that the bits depend on besides the Program and the number of threads
  std::optional<Error> stale;  // why this machine's entry in the user's catalog was rejected
  std::string catalog_entry, catalog_date, catalog_hash;
  MachineSpeed speed;
  std::string link_source;            // of speed.link: "shm, systole calibrate of 2026-11-22", for people
  std::optional<RanksLink> tls_link;  // replaces speed.link if ranks speak over TLS and it was measured
};

// Calibrated on this machine, with any number of threads; otherwise the catalog's estimate. `over_tcp`: ranks of
// several nodes; their network's cost is unknown here, so local TCP gives a lower bound. Errors: those of the catalog.
Result<RanksLink> find_link(Clock& clock, std::int64_t ranks, bool over_tcp);

struct MachineUse {
  std::int64_t ranks = 1;         // of the Program
  bool exact = false;             // for exact training
  bool over_tcp = false;          // ranks are on several nodes
  std::optional<RanksLink> link;  // agreed on by all ranks; otherwise find_link's
  // For gpu, tpu and xla-cpu: the host of the devices, and the index of this one; otherwise a device is opened.
  std::shared_ptr<XlaHost> xla;
  std::int64_t rank = 0;
  bool tls = false;  // ranks of several nodes use TLS; applies to ranks over TCP
};

// The catalog entry for the instruction set in the cpu backend's name.
std::string default_entry(const std::string& target_name);

// The built-in catalog, overlaid by the user's files. Without `chips` it skips the file of accelerators, whose reading
// takes a tenth of a plan's time; a user with files of their own gets it anyway, since they may overlay it.
Result<Catalog> read_catalog(bool chips = true);

// Checks that this process may use a core for each of so many threads. A team waits for its slowest thread, so more
// threads than cores make each step longer. `key`: where they were requested: resources.threads, --threads. Errors:
// invalid.
Status check_threads(std::int64_t threads, const std::string& key);
// The same for a workload for the cpu backend; the error is at its key. Errors: invalid.
Status check_threads(const std::string& backend, const ResourcesSpec& resources, const WorkloadSource& source);

// Pins this process's devices to these instructions (Machine::isa, or one word), before the first is opened; empty: no
// pin. Errors: invalid, unsupported.
Status pin_isa(const std::string& backend, const std::string& isa);
// Machine::numerics of this machine if pinned to `isa`; nothing if it cannot be.
std::optional<std::string> numerics_pinned_to(const std::string& isa);

// `backend`: cpu or reference. Errors: unsupported; those of the catalog.
Result<Machine> open_machine(const std::string& backend, const ResourcesSpec& resources, Clock& clock,
                             const MachineUse& use = {});

}  // namespace systole

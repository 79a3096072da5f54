#pragma once
// This machine as commands use it: its device, its entry of the catalog, how fast its ranks speak to each other, and
// the instructions that it is held to.

#include <memory>
#include <optional>
#include <string>

#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/backends/xla/xla.h"
#include "ground/base/clock.h"
#include "ground/catalog/catalog.h"
#include "predict/perf/estimate.h"

namespace systole::cli {

// How fast ranks speak to each other, and who says so.
struct RanksLink {
  LinkCost cost;
  std::string source;
};

// This machine: the device that runs, and how fast the catalog says it is.
struct Machine {
  std::unique_ptr<Device> device;
  std::string identity;        // what must be the same for a calibration to hold
  std::string isa;             // instructions that the bits of results depend on, "avx512/avx512-bf16"; empty: on none
  std::string numerics;        // all that they depend on besides the Program and the number of threads
  std::optional<Error> stale;  // why this machine's entry in the user's catalog was not taken
  std::string catalog_entry, catalog_date, catalog_hash;
  MachineSpeed speed;
  std::string link_source;            // of speed.link: "shm, systole calibrate of 2026-11-22", for people
  std::optional<RanksLink> tls_link;  // what speed.link is where ranks speak over TLS
  bool tls_left_out = false;          // of speed.link, where they do and nobody has measured what it takes
};

// As calibrated on this machine, by whatever number of threads, else as the catalog estimates. `over_tcp`: ranks of
// several nodes; what their network costs is not known here, but that it costs no less than TCP within this one does.
// Errors: those of the catalog.
Result<RanksLink> find_link(Clock& clock, std::int64_t ranks, bool over_tcp);

struct MachineUse {
  std::int64_t ranks = 1;         // that a Program is for
  bool exact = false;             // for exact training
  bool over_tcp = false;          // ranks are of several nodes
  std::optional<RanksLink> link;  // that all ranks have agreed on; else find_link's
  // Of gpu, tpu and xla-cpu: where the devices are, and which of them is meant; else one is opened.
  std::shared_ptr<XlaHost> xla;
  std::int64_t rank = 0;
  bool tls = false;  // ranks of several nodes encrypt what they say to each other; counted where ranks speak over TCP
};

// The instruction set in the cpu backend's name → the entry of the catalog.
std::string default_entry(const std::string& target_name);

// What is known of machines: built in, and the user's files over it.
// Without `chips` the file of accelerators is left out, which takes a tenth of a plan's time to read; not so where the
// user has files of their own, which may lie over it.
Result<Catalog> read_catalog(bool chips = true);

// Whether this process may keep a core busy with each of so many threads: a team waits for its slowest, and more only
// make each step longer. `key` is where they were asked for: resources.threads, --threads. Errors: invalid.
Status check_threads(std::int64_t threads, const std::string& key);
// The same for a workload that the cpu is to run, at its place. Errors: invalid.
Status check_threads(const std::string& backend, const ResourcesSpec& resources, const WorkloadSource& source);

// Holds this process's devices to these instructions (Machine::isa, or one word), before the first of them is opened;
// empty: to none. Errors: invalid, unsupported.
Status pin_isa(const std::string& backend, const std::string& isa);
// Machine::numerics of this machine, pinned to that. Nothing where it cannot be.
std::optional<std::string> numerics_pinned_to(const std::string& isa);

// `backend`: cpu or reference. Errors: unsupported; those of the catalog.
Result<Machine> open_machine(const std::string& backend, const ResourcesSpec& resources, Clock& clock,
                             const MachineUse& use = {});

}  // namespace systole::cli

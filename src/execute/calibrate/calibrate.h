#pragma once
// Measures this machine: how fast it computes, moves and stores, for an entry of the catalog. It knows no
// workload: what it runs are single ops, each a Program of its own on the Device that runs everything else, so what is
// measured is what serves.
//
// Each figure is the lower quarter of several runs; its spread is what the middle half of them lies within.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/runtime/device.h"
#include "ground/base/clock.h"
#include "ground/catalog/catalog.h"

namespace systole {

struct CalibratedFact {
  std::string key;  // as in the catalog: "matmul.bf16"
  double value = 0;
  CatalogUnit unit = CatalogUnit::number;
  double spread = 0;  // 0: not of a measurement
  std::string how;    // "contract 2048 x 2048 x 2048, 7 times"
};

struct CalibrateOptions {
  bool quick = false;                               // a sixth of the time, larger spreads
  std::string disk_folder;                          // where a file is written and read; "": the disk is left out
  std::function<void(const CalibratedFact&)> told;  // of each fact, as it is known
};

// REQUIRES: nothing else keeps the machine busy, or the figures are of a busy machine.
// Errors: of the device; io, no_space of the disk.
Result<std::vector<CalibratedFact>> calibrate(Device& device, Clock& clock, const CalibrateOptions& options);

std::string value_text(const CalibratedFact& fact);  // as the catalog has it: "310.2 GFLOP/s"
// What the catalog calls this machine; of so many threads "this-machine-2", each an entry in a file of its own.
constexpr std::string_view kThisMachine = "this-machine";
std::string calibrated_entry(std::int64_t threads);
// A catalog file with the one entry; `machine`: what must be the same for it to hold; `date`: YYYY-MM-DD.
std::string catalog_text(const std::vector<CalibratedFact>& facts, std::string_view entry, std::string_view machine,
                         std::string_view date);

// write, fsync and read of a file in `folder`, of `bytes`. calibrate() calls it.
Result<std::vector<CalibratedFact>> measure_disk(const std::string& folder, Bytes bytes, Clock& clock);

// Latency and bandwidth between processes of this host over shared memory and TCP, among 2 and 4 ranks, and over
// TLS among 2, in about `budget` and a quarter: "link.shm.2.latency". Starts processes and ends them. calibrate() calls
// it first, while the device has made no threads. Errors: of transports and processes.
Result<std::vector<CalibratedFact>> measure_links(Seconds budget, Clock& clock);

}  // namespace systole

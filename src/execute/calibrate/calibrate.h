#pragma once
// Measures this machine for an entry of the catalog: how fast it computes, moves and stores data. It knows no workload:
// it runs single ops, each as a Program on the Device that also runs training, so it measures the kernels in real use.
//
// Each figure is the lower quartile of several runs; its spread is the interquartile range.

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
  double spread = 0;  // 0: not measured
  std::string how;    // "contract 2048 x 2048 x 2048, 7 times"
};

struct CalibrateOptions {
  bool quick = false;         // a sixth of the time, larger spreads
  Device* serving = nullptr;  // as a server opens it, for plans of serving; null: these are not measured
  std::string disk_folder;    // folder of the file that is written and read; "": no disk measurement
  std::function<void(const CalibratedFact&)> told;  // called with each fact as soon as it is known
};

// REQUIRES: the machine is otherwise idle; else the figures are those of a busy machine.
// Errors: of the device; io, no_space of the disk.
Result<std::vector<CalibratedFact>> calibrate(Device& device, Clock& clock, const CalibrateOptions& options);

std::string value_text(const CalibratedFact& fact);  // as in the catalog: "310.2 GFLOP/s"
// The catalog's name of this machine; with a thread count "this-machine-2". Each entry has its own file.
constexpr std::string_view kThisMachine = "this-machine";
std::string calibrated_entry(std::int64_t threads);
// A catalog file with one entry. `machine`: the hardware identity for which it is valid; `date`: YYYY-MM-DD.
std::string catalog_text(const std::vector<CalibratedFact>& facts, std::string_view entry, std::string_view machine,
                         std::string_view date);

// Measures write, fsync and read of a file of `bytes` in `folder`. Called by calibrate().
Result<std::vector<CalibratedFact>> measure_disk(const std::string& folder, Bytes bytes, Clock& clock);

// Measures latency and bandwidth between processes of this host, in about 1.25 × `budget`: over shared memory and TCP
// with 2 and 4 ranks, over TLS with 2: "link.shm.2.latency". Starts child processes and ends them. calibrate() calls it
// first, before the device has made threads.
// Errors: of transports and processes.
Result<std::vector<CalibratedFact>> measure_links(Seconds budget, Clock& clock);

}  // namespace systole

#pragma once
// A machine's speed from the facts of its catalog entry; facts per core are multiplied by the cores. Facts:
// matmul.<type>, attention.<type>, vector.f32, elementary.f32 (/s), memory.bandwidth, memory.update (may be absent),
// cache.<level>.size with cache.<level>.bandwidth, call. A cache's size is per core. Calibration adds, each optional:
// memory.read and .write, cache.<level>.write, serial, product.<type>.<layout> with .elements, step.<type>,
// function.<op>, kernel.<op>.<type> with .row.
//
// For a chip (kind tpu or gpu) the speed is that of one device. matmul.bf16 (without bf16: matmul.f16) and
// memory.bandwidth are enough: memory bandwidth then bounds all other work, the 16-bit rate bounds products in f32 and
// f16, and a kernel starts in no time. Such a time is a lower bound, and the machine counts as not calibrated.

#include "ground/catalog/catalog.h"
#include "predict/perf/machine_speed.h"

namespace systole {

// Errors: not_found or invalid, naming the fact; invalid when cores is below 1.
Result<MachineSpeed> speed_of(const CatalogEntry& entry, int cores);

// The link between ranks of one host: link.latency and link.bandwidth. Errors: not_found; those of the facts.
Result<LinkCost> link_of(const CatalogEntry& entry);
// The link over a transport ("shm", "tcp") as calibrated, with the largest number of ranks up to `ranks`, else with the
// smallest: link.<transport>.<ranks>.latency and .bandwidth. Empty if the entry has none. Errors: those of the facts.
Result<std::optional<LinkCost>> link_among(const CatalogEntry& entry, const std::string& transport, std::int64_t ranks);

}  // namespace systole

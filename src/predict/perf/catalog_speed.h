#pragma once
// A machine's speed out of the catalog, for a machine that nobody has measured: the facts of its entry, times its cores
// where they are stated per core. Facts: matmul.<type>, attention.<type>, vector.f32, elementary.f32 (/s),
// memory.bandwidth, memory.update (may be absent), cache.<level>.size with cache.<level>.bandwidth, call. A cache's
// size is a core's own. What calibration adds, each may be absent: memory.read and .write, cache.<level>.write, serial,
// product.<type>.<layout> with .elements, step.<type>, function.<op>, kernel.<op>.<type> with .row.
//
// Of a chip (kind tpu or gpu) the speed is one device's, and matmul.bf16 (of one without bf16 matmul.f16) and
// memory.bandwidth are enough: what else it does is then bounded by memory bandwidth, its products in f32 and f16 by
// the rate in 16 bits, and a kernel starts in no time. Such a time is a bound from below, of a machine that was not
// calibrated.

#include "ground/catalog/catalog.h"
#include "predict/perf/machine_speed.h"

namespace systole {

// Errors: not_found or invalid, naming the fact; invalid when cores is below 1.
Result<MachineSpeed> speed_of(const CatalogEntry& entry, int cores);

// From the keys link.latency and link.bandwidth, between ranks of one host. Errors: not_found; of the facts.
Result<LinkCost> link_of(const CatalogEntry& entry);
// As calibration has measured it over a transport ("shm", "tcp") among so many ranks or the number next to it:
// link.<transport>.<ranks>.latency and .bandwidth. Nothing where the entry has none. Errors: of the facts.
Result<std::optional<LinkCost>> link_among(const CatalogEntry& entry, const std::string& transport, std::int64_t ranks);

}  // namespace systole

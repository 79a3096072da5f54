#pragma once
// What a pod may have of a machine that is its alone.

#include "ground/catalog/machine_type.h"

namespace systole {

struct HostShare {
  std::int64_t cpus = 0;
  Bytes memory{};
};
// Nothing, 0 of each, where the catalog does not say one number of processors and of memory.
HostShare host_share(const MachineType& machine);

}  // namespace systole

#pragma once
// Sizes of new volumes beside what their tiers offer, by the catalog.

#include <span>

#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/catalog/tables.h"

namespace systole {

// Errors: invalid, all at once, of the keys "volumes.PATH.size": no row of the volume's tier offers such a size. What
// the catalog has no sizes of is not checked, nor what is there already or follows from the feed.
Status check_sizes(const Workload& workload, std::span<const StorageTier> tiers);

}  // namespace systole

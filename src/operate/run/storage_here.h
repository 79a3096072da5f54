#pragma once
// The storage of a workload's rows, as far as this machine knows: how large they will be, by the files that are here;
// and the volume that an open one becomes where it is rendered, by the feed of a plan.

#include <optional>
#include <string>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/catalog/tables.h"

namespace systole {

// At most so many bytes of shards: a token of each byte of text. Nothing: files are not here, or are compressed.
std::optional<Bytes> shards_of(const Workload& workload);

struct SettledVolumes {
  std::vector<std::string> chosen;    // what an open volume became, with the numbers; a line each
  std::vector<std::string> warnings;  // of a volume that the workload says: it gives too little, or far too much
};
// Gives each open volume its kind, tier and size, the cheapest that gives what the plan's feed takes. Errors: those of
// check_sizes; invalid: a fact is missing, with the edit that states it; does_not_fit: nothing gives as much.
Result<SettledVolumes> settle_volumes(Workload& workload, const Plan* plan, CatalogTables& tables);

// Gives each open volume any tier and size, for a check of everything else.
void fill_open_volumes(Workload& workload);

}  // namespace systole

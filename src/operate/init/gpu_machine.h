#pragma once
// The GPU machine of a first workload: the cheapest on demand among machines that come with one GPU. A GPU attached to
// an n1 may cost less; the chips that attach (P4, P100, T4, V100) have no bf16, in which language models train here.

#include <string>

#include "ground/base/result.h"
#include "ground/catalog/tables.h"

namespace systole {

struct GpuMachine {
  std::string machine, accelerator, zone;  // "g2-standard-4", "l4", "us-central1-a"
  std::string price, price_date;           // "$0.71/h", and the date of its price list
};

// Errors: not_found: no dated price list has such a machine.
Result<GpuMachine> cheapest_gpu_machine(CatalogTables& tables, const Catalog& catalog);

}  // namespace systole

#pragma once
// The machine of a published row: its chip in the catalog, the devices per chip, and the network of its hosts.

#include "ground/catalog/catalog.h"
#include "predict/backtest/published_row.h"
#include "predict/perf/device_cluster.h"

namespace systole::backtest {

struct RowMachine {
  const CatalogEntry* chip = nullptr;  // of the catalog
  std::int64_t devices_of_chip = 1;
  ClusterOptions cluster;
};

// Adds to `taken` what the row omits, and what is used instead. Errors: unsupported, with a reason in few words, by
// which rows are counted.
Result<RowMachine> row_machine(const PublishedRow& row, const Catalog& catalog, std::vector<std::string>& taken);

}  // namespace systole::backtest

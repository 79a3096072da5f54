#pragma once
// The machine of a published row: which chip of the catalog, how many devices it shows, and how its hosts are joined.

#include "ground/catalog/catalog.h"
#include "predict/backtest/published_row.h"
#include "predict/perf/cluster.h"

namespace systole::backtest {

struct RowMachine {
  const CatalogEntry* chip = nullptr;  // of the catalog
  std::int64_t devices_of_chip = 1;
  ClusterOptions cluster;
};

// Errors: unsupported: a reason in few words, by which rows are counted.
Result<RowMachine> row_machine(const PublishedRow& row, const Catalog& catalog, std::vector<std::string>& taken);

}  // namespace systole::backtest

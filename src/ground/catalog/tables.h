#pragma once
// The catalog's wide tables: machine types, TPU slices, zones, networks, NCCL variables, storage, prices, quotas. The
// built-in tables are CSV files (data/catalog/*.csv) embedded in the program and parsed on first use, so commands that
// do not need them pay nothing. The user's files extend them:
//
//   ~/.config/systole/catalog/*.yaml        systole_catalog: 1
//                                           machines: [{ machine: dgx-1, kind: gpu, accelerator: h100, ... }]
//                                           prices: [{ item: a3-highgpu-8g, region: us-central1, on_demand: $70/h }]
//   ~/.config/systole/catalog/prices.csv    and machines.csv, slices.csv, zones.csv: same columns as the built-in ones
//
// A user's machine or slice replaces the built-in one of its name. Zones and prices are added; the user's prices take
// precedence over the built-in ones.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/catalog/catalog.h"
#include "ground/catalog/fabric.h"
#include "ground/catalog/machine_type.h"
#include "ground/catalog/nccl_row.h"
#include "ground/catalog/price.h"
#include "ground/catalog/quota.h"
#include "ground/catalog/storage_tier.h"
#include "ground/catalog/tpu_slice.h"
#include "ground/catalog/zone.h"

namespace systole {

// data/catalog/<table>.csv as of Systole's build. REQUIRES: one of machines, slices, zones, networks, nccl, storage,
// prices, quotas.
std::string_view builtin_catalog_table(std::string_view table);

// The *.csv files of a folder, sorted by name; none if the folder does not exist. Errors: io; not_found: the file name
// is not a table's, prices.csv or prices-<anything>.csv.
Result<std::vector<CatalogFile>> read_catalog_tables(const std::string& folder);

// One thread at a time: the first call for a table parses it. Spans live as long as the tables.
class CatalogTables {
 public:
  // `own`: the user's files, YAML and CSV, parsed now; later ones override earlier ones. Errors: invalid, all at once,
  // each at its file:line:col with a hint.
  static Result<CatalogTables> read(std::span<const CatalogFile> own = {});

  // Errors: invalid: a built-in table is malformed, which is our bug.
  Result<std::span<const MachineType>> machines();
  Result<std::span<const TpuSlice>> slices();
  Result<std::span<const ZoneRow>> zones();
  Result<std::span<const Fabric>> fabrics();
  Result<std::span<const NcclRow>> nccl();
  Result<std::span<const StorageTier>> storage();
  Result<std::span<const PriceRow>> prices();
  Result<std::span<const QuotaRow>> quotas();

  // Checks that all names in the user's rows exist in the catalog and the tables. Errors: not_found, all at once, each
  // at its place with the nearest names.
  Status check_own_names(const Catalog& catalog);

 private:
  template <typename Row>
  struct Table {
    std::vector<Row> own;
    std::optional<std::vector<Row>> all;
  };
  void read_own(const CatalogFile& file, std::vector<Error>& errors);

  Table<MachineType> machines_;
  Table<TpuSlice> slices_;
  Table<ZoneRow> zones_;
  Table<Fabric> fabrics_;
  Table<NcclRow> nccl_;
  Table<StorageTier> storage_;
  Table<PriceRow> prices_;
  Table<QuotaRow> quotas_;
};

}  // namespace systole

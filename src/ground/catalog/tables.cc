#include "ground/catalog/tables.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "ground/base/nearest.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

constexpr const char* kOwnTables[] = {"machines", "slices", "zones", "prices", "images"};

// The table of "…/prices.csv" and "…/prices-acme.csv"; "" for another name.
std::string table_of(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  for (const char* table : kOwnTables)
    if (stem == table || stem.starts_with(std::string(table) + "-")) return table;
  return "";
}

template <typename Row>
void read_csv(std::string_view text, const std::string& file, bool own, const TableColumns& columns,
              Row (*read_row)(TableRow&), std::vector<Row>& rows, std::vector<Error>& errors) {
  const Result<CsvTable> table = CsvTable::read(std::string(text), file);
  if (!table.ok()) return errors.push_back(table.error());
  if (Status fits = table->expect_columns(columns.required, columns.optional); !fits.ok())
    return errors.push_back(std::move(fits).error());
  rows.reserve(rows.size() + table->num_rows());
  for (std::size_t i = 0; i < table->num_rows(); ++i) {
    TableRow row(*table, i, own, errors);
    rows.push_back(read_row(row));
  }
}

template <typename Row>
void read_yaml(const Node& document, const TableColumns& columns, Row (*read_row)(TableRow&), std::vector<Row>& rows,
               std::vector<Error>& errors) {
  const Node* list = document.find(columns.table);
  if (list == nullptr) return;
  if (!list->is_sequence()) return errors.push_back(list->wrong(fmt::format("a list of {}", columns.table)));
  for (const Node& item : list->items()) {
    TableRow row(item, columns, errors);
    if (item.is_map()) rows.push_back(read_row(row));
  }
}

// The built-in rows except those that `same` matches with a user's row, then the user's rows.
template <typename Row, typename Same>
Result<std::span<const Row>> all_of(const std::vector<Row>& own, std::optional<std::vector<Row>>& all,
                                    const TableColumns& columns, Row (*read_row)(TableRow&), const Same& same) {
  if (!all) {
    std::vector<Row> rows;
    std::vector<Error> errors;
    read_csv(builtin_catalog_table(columns.table), fmt::format("data/catalog/{}.csv", columns.table), false, columns,
             read_row, rows, errors);
    TRY(first_of(std::move(errors)));
    if (!own.empty())
      std::erase_if(rows, [&](const Row& row) {
        return std::ranges::any_of(own, [&](const Row& mine) { return same(row, mine); });
      });
    rows.insert(rows.end(), own.begin(), own.end());
    all = std::move(rows);
  }
  return std::span<const Row>(*all);
}

constexpr auto kNever = [](const auto&, const auto&) { return false; };

}  // namespace

Result<std::vector<CatalogFile>> read_catalog_tables(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<CatalogFile> files;
  std::error_code code;
  if (folder.empty() || !fs::exists(folder, code)) return files;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (it->path().extension() == ".csv") paths.push_back(it->path().string());
  if (code) return error(ErrorKind::io, "cannot read the folder: {}", code.message()).at({folder, 0, 0});
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    if (table_of(path).empty()) {
      const std::vector<std::string> names(std::begin(kOwnTables), std::end(kOwnTables));
      return error(ErrorKind::not_found, "no table of the catalog has this name")
          .at({path, 0, 0})
          .hinted(fmt::format("{}; as in prices.csv or prices-negotiated.csv",
                              nearest_hint(fs::path(path).stem().string(), names)));
    }
    files.push_back({path, TRY(read_text_file(path))});
  }
  return files;
}

void CatalogTables::read_own(const CatalogFile& file, std::vector<Error>& errors) {
  const auto read = [&]<typename Row>(const Node* yaml, const TableColumns& columns, Row (*read_row)(TableRow&),
                                      std::vector<Row>& rows) {
    if (yaml != nullptr) read_yaml(*yaml, columns, read_row, rows, errors);
    if (yaml == nullptr && table_of(file.name) == columns.table)
      read_csv(file.text, file.name, true, columns, read_row, rows, errors);
  };
  std::optional<Node> yaml;
  if (!file.name.ends_with(".csv")) {
    Result<Node> document = parse_yaml(file.text, file.name);
    if (!document.ok()) return errors.push_back(document.error());
    yaml = std::move(document).value();
  }
  const Node* document = yaml ? &*yaml : nullptr;
  read(document, kMachineColumns, read_machine_type, machines_.own);
  read(document, kSliceColumns, read_tpu_slice, slices_.own);
  read(document, kZoneColumns, read_zone, zones_.own);
  read(document, kPriceColumns, read_price, prices_.own);
}

Result<CatalogTables> CatalogTables::read(std::span<const CatalogFile> own) {
  CatalogTables tables;
  std::vector<Error> errors;
  for (const CatalogFile& file : own) tables.read_own(file, errors);
  TRY(first_of(std::move(errors)));
  return tables;
}

Status CatalogTables::check_own_names(const Catalog& catalog) {
  std::vector<std::string> chips, machines;
  for (const auto& [name, entry] : catalog.entries())
    if (entry.kind == "gpu" || entry.kind == "tpu") chips.push_back(name);
  std::vector<Error> errors;
  const auto check = [&](const std::string& name, const std::vector<std::string>& known, const char* what,
                         const Dated& dated) {
    if (std::ranges::find(known, name) != known.end()) return;
    errors.push_back(error(ErrorKind::not_found, "the catalog knows no {} '{}'", what, name)
                         .at(dated.where)
                         .hinted(nearest_hint(name, known)));
  };
  for (const MachineType& row : machines_.own)
    if (!row.accelerator.empty()) check(row.accelerator, chips, "accelerator", row.dated);
  for (const TpuSlice& row : slices_.own) check(row.accelerator, chips, "accelerator", row.dated);
  for (const ZoneRow& row : zones_.own) check(row.accelerator, chips, "accelerator", row.dated);
  std::set<std::string> places;  // regions, and zones of the user's own machines, which serve as regions too
  if (!prices_.own.empty()) {
    for (const MachineType& type : TRY(this->machines())) {
      machines.push_back(type.name);
      places.insert(type.zones.begin(), type.zones.end());
    }
    for (const ZoneRow& zone : TRY(zones())) places.insert(zone.region);
    for (const PriceRow& row : TRY(prices()))
      if (!row.dated.own) places.insert(row.region);
  }
  const std::vector<std::string> regions(places.begin(), places.end());
  for (const PriceRow& row : prices_.own) {
    const bool machine = row.of == PriceOf::machine;
    check(row.item, machine ? machines : chips, machine ? "machine type" : "accelerator", row.dated);
    // The user's own machines may be in any region.
    const bool own = std::ranges::any_of(machines_.own, [&](const MachineType& m) { return m.name == row.item; });
    if (!row.region.empty() && !own) check(row.region, regions, "region", row.dated);
  }
  return first_of(std::move(errors));
}

Result<std::span<const MachineType>> CatalogTables::machines() {
  return all_of(machines_.own, machines_.all, kMachineColumns, read_machine_type,
                [](const MachineType& a, const MachineType& b) { return a.name == b.name; });
}

Result<std::span<const TpuSlice>> CatalogTables::slices() {
  return all_of(slices_.own, slices_.all, kSliceColumns, read_tpu_slice,
                [](const TpuSlice& a, const TpuSlice& b) { return a.name == b.name && a.shape == b.shape; });
}

Result<std::span<const ZoneRow>> CatalogTables::zones() {
  return all_of(zones_.own, zones_.all, kZoneColumns, read_zone, kNever);
}
Result<std::span<const Fabric>> CatalogTables::fabrics() {
  return all_of(fabrics_.own, fabrics_.all, kFabricColumns, read_fabric, kNever);
}
Result<std::span<const NcclRow>> CatalogTables::nccl() {
  return all_of(nccl_.own, nccl_.all, kNcclColumns, read_nccl_row, kNever);
}
Result<std::span<const StorageTier>> CatalogTables::storage() {
  return all_of(storage_.own, storage_.all, kStorageColumns, read_storage_tier, kNever);
}
Result<std::span<const PriceRow>> CatalogTables::prices() {
  return all_of(prices_.own, prices_.all, kPriceColumns, read_price, kNever);
}
Result<std::span<const QuotaRow>> CatalogTables::quotas() {
  return all_of(quotas_.own, quotas_.all, kQuotaColumns, read_quota, kNever);
}

}  // namespace systole

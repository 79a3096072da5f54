#include "ground/catalog/tables.h"
#include "ground/base/testing/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace systole {
namespace {

CatalogTables& builtin() {
  static CatalogTables tables = CatalogTables::read().value();
  return tables;
}
const Catalog& catalog() {
  static const Catalog all = Catalog::read(builtin_catalog_files()).value();
  return all;
}

TEST(CatalogTables, embeds_the_files_as_they_are) {
  for (const char* table : {"machines", "slices", "zones", "networks", "nccl", "storage", "prices", "quotas"}) {
    std::stringstream text;
    text << std::ifstream(std::string(SYSTOLE_SOURCE_DIR) + "/data/catalog/" + table + ".csv").rdbuf();
    EXPECT_EQ(builtin_catalog_table(table), text.str()) << table;
  }
}

// Accounts for all collected rows: of 72 machine types one is a Vertex AI name without a machine, and 14 sizes of n1
// that take GPUs are added; of 123 collected prices 17 are hearsay and 76 repeat one of the 1,762 of the lists.
TEST(CatalogTables, no_row_is_lost) {
  EXPECT_EQ(builtin().machines()->size(), 72U - 1 + 14);
  EXPECT_EQ(builtin().slices()->size(), 278U);
  EXPECT_EQ(builtin().zones()->size(), 336U);
  EXPECT_EQ(builtin().fabrics()->size(), 17U);
  EXPECT_EQ(builtin().storage()->size(), 51U + 3);
  EXPECT_EQ(builtin().prices()->size(), 1762U + 123 - 17 - 76);
  EXPECT_EQ(builtin().quotas()->size(), 57U);
  std::map<std::string, int> slices;
  for (const TpuSlice& slice : *builtin().slices()) ++slices[slice.accelerator];
  EXPECT_EQ(slices, (std::map<std::string, int>{
                        {"v2", 5}, {"v3", 8}, {"v4", 54}, {"v5e", 8}, {"v5p", 96}, {"v6e", 8}, {"tpu7x", 99}}));
}

// Names are consistent across tables.
TEST(CatalogTables, tables_speak_of_the_same_things) {
  std::set<std::string> machines, accelerators, zones, regions;
  for (const auto& [name, entry] : catalog().entries()) accelerators.insert(name);
  for (const MachineType& type : *builtin().machines()) {
    EXPECT_TRUE(machines.insert(type.name).second) << type.name << " is there twice";
    EXPECT_TRUE(type.accelerator.empty() || accelerators.contains(type.accelerator)) << type.name;
  }
  for (const TpuSlice& slice : *builtin().slices()) {
    EXPECT_TRUE(accelerators.contains(slice.accelerator)) << slice.name;
    EXPECT_TRUE(slice.machine.empty() || machines.contains(slice.machine)) << slice.name << " " << slice.machine;
    EXPECT_LE(slice.chips, catalog().find(slice.accelerator).value()->number("chips.pod").value()) << slice.name;
  }
  for (const ZoneRow& row : *builtin().zones()) {
    EXPECT_TRUE(accelerators.contains(row.accelerator)) << row.zone;
    EXPECT_TRUE(row.zone.starts_with(row.region + "-")) << row.zone << " of " << row.region;
    zones.insert(row.zone);
    for (const std::string& pattern : row.machines)
      EXPECT_TRUE(std::ranges::any_of(machines, [&](const std::string& name) { return matches(pattern, name); }))
          << pattern;
  }
  for (const Fabric& fabric : *builtin().fabrics())
    for (const std::string& name : fabric.accelerators)
      EXPECT_TRUE(fabric.family == "PCIe" || accelerators.contains(name)) << name;
  for (const QuotaRow& row : *builtin().quotas()) {
    for (const std::string& name : row.accelerators) EXPECT_TRUE(accelerators.contains(name)) << name;
    for (const std::string& pattern : row.machines)
      EXPECT_TRUE(std::ranges::any_of(machines, [&](const std::string& name) { return matches(pattern, name); }))
          << pattern;
  }
  for (const PriceRow& row : *builtin().prices()) {
    const bool known = row.of == PriceOf::machine ? machines.contains(row.item) : accelerators.contains(row.item);
    EXPECT_TRUE(known) << to_string(row.dated.where) << " " << row.item;
    for (const std::string& zone : row.zones) EXPECT_TRUE(zones.contains(zone)) << to_string(row.dated.where) << zone;
  }
}

TEST(CatalogTables, every_row_has_a_source_and_a_date_or_says_that_it_was_recalled) {
  const auto check = [](const Dated& dated) {
    EXPECT_FALSE(dated.source.empty()) << to_string(dated.where);
    EXPECT_FALSE(dated.own);
    EXPECT_TRUE(dated.confidence == "high" || dated.confidence == "medium" || dated.confidence == "low");
    EXPECT_EQ(dated.source.find("find_string"), std::string::npos) << to_string(dated.where);
  };
  for (const MachineType& row : *builtin().machines()) check(row.dated);
  for (const TpuSlice& row : *builtin().slices()) check(row.dated);
  for (const ZoneRow& row : *builtin().zones()) check(row.dated);
  for (const Fabric& row : *builtin().fabrics()) check(row.dated);
  for (const NcclRow& row : *builtin().nccl()) check(row.dated);
  for (const StorageTier& row : *builtin().storage()) check(row.dated);
  for (const QuotaRow& row : *builtin().quotas()) check(row.dated);
  for (const PriceRow& row : *builtin().prices()) {
    check(row.dated);
    bool amount = false;
    for (const PriceCell& cell : row.cells) amount = amount || cell.amount;
    EXPECT_TRUE(!amount || !row.dated.date.empty()) << "a price without a date: " << to_string(row.dated.where);
  }
}

// No list sells a commitment or a spot machine above the on-demand price.
TEST(CatalogTables, terms_are_in_the_order_of_what_they_ask) {
  for (const PriceRow& row : *builtin().prices()) {
    const auto amount = [&](Provisioning terms) { return row.cell(terms).amount; };
    const auto demand = amount(Provisioning::on_demand);
    for (const Provisioning terms : {Provisioning::spot, Provisioning::flex_start, Provisioning::commitment_1y})
      EXPECT_TRUE(!demand || !amount(terms) || *amount(terms) < *demand) << to_string(row.dated.where);
    const auto one = amount(Provisioning::commitment_1y), three = amount(Provisioning::commitment_3y);
    EXPECT_TRUE(!one || !three || *three < *one) << to_string(row.dated.where);
  }
}

TEST(CatalogTables, figures_of_the_lists) {
  const auto price = [](PriceOf of, const char* item, const char* region, Provisioning terms, const char* slices = "") {
    std::vector<const PriceRow*> rows;
    for (const PriceRow& row : *builtin().prices()) rows.push_back(&row);
    const PriceQuery query{of, item, region, "", slices, 1, terms};
    const Price found = price_of(find_price_row(rows, query), query, item);
    return found.known() ? found.amount->count() : -1;
  };
  using enum Provisioning;
  EXPECT_NEAR(price(PriceOf::machine, "a3-highgpu-8g", "us-central1", on_demand), 88.49, 1e-3);
  EXPECT_NEAR(price(PriceOf::machine, "a2-ultragpu-1g", "us-central1", on_demand), 5.0688, 1e-4);
  EXPECT_NEAR(price(PriceOf::machine, "e2-medium", "us-central1", on_demand), 0.0335, 1e-4);
  EXPECT_EQ(price(PriceOf::chip, "v5p", "us-east5", on_demand), 4.2);
  EXPECT_EQ(price(PriceOf::chip, "v5e", "us-west4", on_demand), 1.2);
  EXPECT_EQ(price(PriceOf::chip, "v6e", "us-east5", flex_start), 1.35);
  EXPECT_EQ(price(PriceOf::chip, "v5p", "us-east5", commitment_3y), 1.89);
  EXPECT_EQ(price(PriceOf::chip, "tpu7x", "us-central1", on_demand), 12);
  EXPECT_EQ(price(PriceOf::chip, "v2", "us-central1", on_demand, "device"), 1.125);
  EXPECT_EQ(price(PriceOf::chip, "v2", "us-central1", on_demand, "pod"), 1.5);
  EXPECT_EQ(price(PriceOf::chip, "v6e", "asia-east1", on_demand), -1) << "the list holds a placeholder";
  EXPECT_EQ(price(PriceOf::machine, "a4x-highgpu-4g", "us-central1", on_demand), -1);
}

TEST(CatalogTables, fabrics_and_storage) {
  const auto fabric = [](const char* family) {
    return *std::ranges::find(*builtin().fabrics(), family, &Fabric::family);
  };
  EXPECT_EQ(fabric("A3 High").per_accelerator, BytesPerSecond(12.5e9));
  EXPECT_EQ(fabric("A3 Mega").measured, BytesPerSecond(188.9e9));
  EXPECT_EQ(fabric("A3 Ultra").nics, 8);
  EXPECT_EQ(fabric("TPU v6e").per_accelerator, BytesPerSecond(12.5e9));
  EXPECT_FALSE(fabric("A4").measured) << "none published";
  bool filestore = false;
  for (const StorageTier& tier : *builtin().storage())
    if (tier.tier.starts_with("Zonal, lower")) {
      filestore = true;
      EXPECT_EQ(tier.read_per_tib, BytesPerSecond(260.0 * (1 << 20)));
      EXPECT_EQ(tier.least, Bytes(std::int64_t{1} << 40));
    }
  EXPECT_TRUE(filestore);
  int with_requests = 0;
  for (const StorageTier& tier : *builtin().storage()) {
    EXPECT_EQ(tier.thousand_writes.has_value(), tier.thousand_reads.has_value()) << tier.tier;
    if (!tier.thousand_writes) continue;
    ++with_requests;
    EXPECT_EQ(*tier.thousand_writes, Dollars(0.005)) << tier.region;
    EXPECT_EQ(*tier.thousand_reads, Dollars(0.0004)) << tier.region;
  }
  EXPECT_EQ(with_requests, 4 + 1) << "of Standard regional and S3 alone; the others are unknown";
}

TEST(CatalogTables, the_users_rows_lie_over_the_built_in_ones) {
  const std::string yaml =
      "systole_catalog: 1\n"
      "machines:\n"
      "  - { machine: a3-highgpu-8g, kind: gpu, accelerator: h100, accelerators: 8, vcpus: 200, source: me, date: "
      "2026-11-01 }\n"
      "zones:\n"
      "  - { accelerator: h100, region: moon, zone: moon-a, machines: a3-highgpu-8g, source: me, date: 2026-11-01 }\n";
  CatalogTables tables = CatalogTables::read(std::vector<CatalogFile>{{"own.yaml", yaml}}).value();
  EXPECT_EQ(tables.machines()->size(), builtin().machines()->size());
  EXPECT_EQ(machine_for(*tables.machines(), "a3-highgpu-8g", "h100").value()->vcpus->most, 200);
  EXPECT_EQ(tables.zones()->size(), builtin().zones()->size() + 1);
  EXPECT_TRUE(Catalog::read(std::vector<CatalogFile>{{"own.yaml", yaml}}).ok()) << "a file without entries";
  const auto wrong =
      CatalogTables::read(std::vector<CatalogFile>{{"own.yaml", "machines: 3\n"}, {"prices.csv", "a\n"}});
  EXPECT_NE(to_string(wrong.error()).find("own.yaml:1:11: error: expected a list of machines"), std::string::npos);
  EXPECT_NE(to_string(wrong.error()).find("prices.csv:1:1: error: missing columns"), std::string::npos);
}

// A price with a misspelled name would never be found.
TEST(CatalogTables, names_in_the_users_rows_are_checked) {
  const auto names = [](const std::string& rows) {
    CatalogTables tables =
        CatalogTables::read(std::vector<CatalogFile>{{"own.yaml", "systole_catalog: 1\n" + rows}}).value();
    const Status checked = tables.check_own_names(catalog());
    return checked.ok() ? std::string() : to_string(checked.error());
  };
  const std::string machine =
      "machines:\n  - { machine: dgx, kind: gpu, accelerator: h100, accelerators: 8, source: s, date: 2026-11-01 }\n";
  const std::string price =
      "prices:\n  - { per: machine, item: dgx, region: lab, own: $1/h, source: s, date: 2026-11-01 }\n";
  EXPECT_EQ(names(machine + price), "");
  const auto v5p_in = [&](const std::string& region) {
    return names("prices:\n  - { per: chip, item: v5p, region: " + region +
                 ", spot: $1/h, source: s, date: 2026-11-01 }\n");
  };
  EXPECT_EQ(v5p_in("us-east5"), "");
  const std::string nowhere = v5p_in("us-esat5");
  for (const char* part : {"own.yaml:3:24: error: the catalog knows no region 'us-esat5'", "did you mean 'us-east5'"})
    EXPECT_NE(nowhere.find(part), std::string::npos) << part << "\n" << nowhere;
  const std::string no_machine = names(price);
  EXPECT_NE(no_machine.find("own.yaml:3:27: error: the catalog knows no machine type 'dgx'"), std::string::npos)
      << no_machine;
  const std::string no_chip = names(
      "zones:\n  - { accelerator: h1000, region: r, zone: z, source: s, date: 2026-11-01 }\n"
      "prices:\n  - { per: chip, item: v5q, region: us-east5, spot: $1/h, source: s, date: 2026-11-01 }\n");
  for (const char* part : {"own.yaml:3:20: error: the catalog knows no accelerator 'h1000'", "did you mean 'h100'",
                           "own.yaml:5:24: error: the catalog knows no accelerator 'v5q'", "'v5p'"})
    EXPECT_NE(no_chip.find(part), std::string::npos) << part << "\n" << no_chip;
}

TEST(CatalogTables, the_users_folder) {
  const std::string folder = testing::TempDir() + "/systole_catalog_tables_test";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(read_catalog_tables(folder).value().empty());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/prices-acme.csv") << "per,item,region,on_demand,source,date\n";
  std::ofstream(folder + "/chips.yaml") << "systole_catalog: 1\n";
  EXPECT_EQ(read_catalog_tables(folder)->size(), 1U);
  std::ofstream(folder + "/price.csv") << "\n";
  const auto wrong = read_catalog_tables(folder);
  EXPECT_EQ(wrong.error().kind, ErrorKind::not_found);
  EXPECT_NE(wrong.error().hint.find("'prices'"), std::string::npos) << wrong.error().hint;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace systole

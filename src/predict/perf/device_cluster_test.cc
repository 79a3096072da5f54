#include "predict/perf/device_cluster.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

const Catalog& catalog() {
  static const Catalog known = Catalog::read(builtin_catalog_files()).value();
  return known;
}

Cluster cluster(const char* chip, ClusterOptions options) {
  return cluster_of(*catalog().find(chip).value(), options).value();
}

TEST(Cluster, every_accelerator_has_products_memory_and_shares_of_them) {
  int chips = 0;
  for (const auto& [name, entry] : catalog().entries()) {
    if ((entry.kind != "gpu" && entry.kind != "tpu") || !entry.facts.contains("matmul.bf16")) continue;
    SCOPED_TRACE(name);
    ++chips;
    const Accelerator chip = accelerator_of(entry).value();
    EXPECT_FALSE(chip.products.empty());
    for (const auto& [type, products] : chip.products) {
      EXPECT_GT(products.reached, 0) << name_of(type);
      EXPECT_LE(products.reached, 1) << name_of(type);
    }
    EXPECT_GT(chip.memory, BytesPerSecond());
    EXPECT_GT(chip.capacity, Bytes());
  }
  EXPECT_GT(chips, 0);
}

TEST(Cluster, ranks_of_one_machine_go_by_its_links_others_by_their_cards) {
  const Cluster h100 = cluster("h100", {.devices = 32});
  const Mesh mesh = Mesh::parse("data=4 model=8").value();
  const GroupLinks model = links_of(h100, mesh, "model"), data = links_of(h100, mesh, "data");
  EXPECT_FALSE(model.leaves());
  EXPECT_DOUBLE_EQ(model.bandwidth.count(), 450e9);
  EXPECT_TRUE(data.leaves());
  EXPECT_EQ(data.inside, 1);
  EXPECT_DOUBLE_EQ(data.bandwidth.count(), 50e9);
  // Four ranks of a group in each machine: the ring enters by four network cards.
  const GroupLinks four = links_of(h100, Mesh::parse("fsdp=16 model=2").value(), "fsdp");
  EXPECT_EQ(four.inside, 4);
  EXPECT_DOUBLE_EQ(four.bandwidth.count(), 200e9);
  // The whole mesh, over both axes: eight network cards, slower than the links inside.
  EXPECT_DOUBLE_EQ(links_of(h100, mesh, "data,model").bandwidth.count(), 400e9);
  // A rack of 72 is one domain.
  EXPECT_FALSE(links_of(cluster("gb200", {.devices = 64}), Mesh::parse("model=64").value(), "model").leaves());
  EXPECT_EQ(h100.machines(), 4);
}

TEST(Cluster, a_torus_closes_only_where_its_slice_does) {
  const auto ways = [](const char* chip, std::vector<std::int64_t> torus, const char* mesh, const char* axis) {
    ClusterOptions options;
    options.devices = 1;
    for (const std::int64_t side : torus) options.devices *= side;
    options.torus = std::move(torus);
    const Cluster slice = cluster(chip, options);
    return links_of(slice, Mesh::parse(mesh).value(), axis).bandwidth.count() / slice.fast.count();
  };
  EXPECT_DOUBLE_EQ(ways("v5e", {4, 4}, "data=4 model=4", "model"), 1);      // open
  EXPECT_DOUBLE_EQ(ways("v5e", {16, 16}, "data=16 model=16", "model"), 2);  // closed at 16
  EXPECT_DOUBLE_EQ(ways("v5e", {8, 16}, "data=8 model=16", "data"), 1);
  EXPECT_DOUBLE_EQ(ways("v5e", {16, 16}, "fsdp=256", "fsdp"), 4);  // both axes at once
  EXPECT_DOUBLE_EQ(ways("v5p", {4, 4, 4}, "data=16 model=4", "data"), 4);
  EXPECT_DOUBLE_EQ(ways("v5p", {4, 4, 4}, "data=16 model=4", "model"), 2);
  EXPECT_DOUBLE_EQ(ways("v5p", {8, 8, 8}, "fsdp=32 model=16", "model"), 3);  // a ring of 8, and a part of another
  EXPECT_DOUBLE_EQ(ways("v5p", {2, 2, 4}, "data=16", "data"), 3);            // not built of whole cubes: no ring
}

TEST(Cluster, slices_are_joined_by_their_own_network) {
  const Cluster two = cluster("v5e", {.devices = 512, .slices = 2});
  EXPECT_EQ(two.domain, 256);
  EXPECT_EQ(two.torus, (std::vector<std::int64_t>{16, 16}));
  const Mesh mesh = Mesh::parse("data=2 fsdp=256").value();
  EXPECT_FALSE(links_of(two, mesh, "fsdp").leaves());
  EXPECT_TRUE(links_of(two, mesh, "data").leaves());
  EXPECT_DOUBLE_EQ(links_of(two, mesh, "data").bandwidth.count(), 3.125e9);
  EXPECT_EQ(two.machines(), 2);
}

TEST(Cluster, unknown_is_refused) {
  ClusterOptions options{.devices = 16};
  const auto told = cluster_of(*catalog().find("t4").value(), options);
  ASSERT_FALSE(told.ok());
  EXPECT_NE(to_string(told.error()).find("network"), std::string::npos) << to_string(told.error());
  EXPECT_FALSE(cluster_of(*catalog().find("v5e").value(), {.devices = 8, .torus = {4, 4}}).ok());
  EXPECT_FALSE(cluster_of(*catalog().find("v5e").value(), {.devices = 9, .slices = 2}).ok());
}

TEST(Cluster, facts_of_another_unit_are_refused_by_name) {
  const auto told = [](const char* chip, const char* fact, CatalogUnit unit, double value) {
    CatalogEntry entry = *catalog().find(chip).value();
    entry.facts.at(fact).unit = unit;
    entry.facts.at(fact).value = value;
    const auto made = cluster_of(entry, {.devices = 16});
    return made.ok() ? std::string() : made.error().message;
  };
  EXPECT_EQ(told("h100", "network.bandwidth", CatalogUnit::bytes, 50e9),
            "network.bandwidth of h100 is in 'B', and not in 'B/s'");
  EXPECT_EQ(told("v5e", "dcn.bandwidth", CatalogUnit::number, 50), "dcn.bandwidth of v5e is in '', and not in 'B/s'");
  EXPECT_EQ(told("h100", "nvlink.domain", CatalogUnit::bytes, 8), "nvlink.domain of h100 is in 'B', and not in ''");
  EXPECT_EQ(told("h100", "host.devices", CatalogUnit::number, 0.5),
            "host.devices of 'h100' is 0.5, no count of 1 or more");
  EXPECT_EQ(told("v5p", "torus.closes.cubes", CatalogUnit::number, 0),
            "torus.closes.cubes of 'v5p' is 0, no count of 1 or more");
  EXPECT_EQ(told("v5p", "torus.dims", CatalogUnit::number, 3), "");
}

}  // namespace
}  // namespace systole

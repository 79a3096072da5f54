#include "ground/catalog/offer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace systole {
namespace {

const Catalog& catalog() {
  static const Catalog all = Catalog::read(builtin_catalog_files()).value();
  return all;
}
CatalogTables& builtin() {
  static CatalogTables tables = CatalogTables::read().value();
  return tables;
}
std::vector<Offer> offers(const OfferFilter& filter) { return find_offers(builtin(), catalog(), filter).value(); }

const Offer* named(const std::vector<Offer>& all, const std::string& name, const std::string& zone) {
  const auto found = std::ranges::find_if(all, [&](const Offer& o) { return o.name() == name && o.zone == zone; });
  return found == all.end() ? nullptr : &*found;
}

TEST(Offer, machines_with_gpus) {
  const std::vector<Offer> h100 = offers({.accelerators = {"nvidia-h100-80gb"}, .regions = {"us-central1"}});
  const Offer* eight = named(h100, "a3-highgpu-8g", "us-central1-a");
  ASSERT_NE(eight, nullptr);
  EXPECT_EQ(eight->accelerator, "h100");
  EXPECT_EQ(eight->accelerators, 8);
  EXPECT_NEAR(eight->price.amount->count(), 88.49, 1e-3);
  EXPECT_EQ(eight->price.dated.date, "2026-09-17");
  EXPECT_EQ(named(h100, "a3-highgpu-1g", "us-central1-a"), nullptr) << "Spot and Flex-start only";
  for (const Offer& offer : h100) EXPECT_EQ(offer.provisioning, Provisioning::on_demand) << offer.name();
  const std::vector<Offer> spot =
      offers({.accelerators = {"h100"}, .regions = {"us-central1"}, .provisioning = {Provisioning::spot}});
  ASSERT_NE(named(spot, "a3-highgpu-1g", "us-central1-a"), nullptr);
  EXPECT_NEAR(named(spot, "a3-highgpu-1g", "us-central1-a")->price.amount->count(), 6.3262, 1e-4);
}

// A machine with built-in GPUs costs more than its GPUs alone, so a GPU list price is not the machine's price.
TEST(Offer, a_part_of_a_price_is_none) {
  for (const Offer& offer : offers({.accelerators = {"h200"}, .provisioning = {Provisioning::flex_start}}))
    EXPECT_FALSE(offer.price.known()) << offer.name() << " " << offer.zone;
  bool edge = false;
  for (const Offer& offer : offers({.accelerators = {"h100"}, .machine = "a3-edgegpu-8g"})) {
    edge = true;
    EXPECT_EQ(to_string(offer.price), "unknown");
    EXPECT_EQ(offer.price.note, "no list names its price");
  }
  EXPECT_TRUE(edge);
}

// The T4 costs 0.35, the n1-standard-4 that hosts it 0.19.
TEST(Offer, gpus_that_are_attached) {
  const std::vector<Offer> t4 = offers({.accelerators = {"t4"}, .regions = {"us-central1"}});
  const Offer* one = named(t4, "n1-standard-4 + 1 x t4", "us-central1-a");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->price.amount->count(), 0.54, 1e-3);
  EXPECT_EQ(one->price.of, "n1-standard-4 + 1 x t4");
  EXPECT_EQ(one->machine, "n1-standard-4");
  const Offer* four = named(t4, "n1-standard-96 + 4 x t4", "us-central1-a");
  ASSERT_NE(four, nullptr);
  EXPECT_NEAR(four->price.amount->count(), 4.56 + 4 * 0.35, 1e-2);
  EXPECT_EQ(named(t4, "n1-standard-96 + 1 x t4", "us-central1-a"), nullptr) << "one T4 takes up to 48 vCPUs";
}

TEST(Offer, slices) {
  const std::vector<Offer> v5p = offers({.accelerators = {"v5p"}, .zones = {"us-east5-a"}, .max_chips = 64});
  const Offer* slice = named(v5p, "v5p-128", "us-east5-a");
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->slice->by_shape(), "v5p:4x4x4");
  EXPECT_EQ(slice->machine, "ct5p-hightpu-4t");
  EXPECT_DOUBLE_EQ(slice->price.amount->count(), 64 * 4.2);
  EXPECT_TRUE(slice->published);
  EXPECT_EQ(named(v5p, "v5p-256", "us-east5-a"), nullptr) << "128 chips";
  EXPECT_EQ(v5p.size(), 5U);
  const std::vector<Offer> large = offers({.accelerators = {"v5p"}, .zones = {"us-east5-a"}});
  EXPECT_NE(named(large, "v5p-12288", "us-east5-a"), nullptr);
  EXPECT_EQ(named(large, "v5p-17920", "us-east5-a"), nullptr) << "a whole pod is more than one job is given";
  const std::vector<Offer> v2 = offers({.accelerators = {"v2"}, .regions = {"us-central1"}});
  EXPECT_DOUBLE_EQ(named(v2, "v2-8", "us-central1-b")->price.amount->count(), 4 * 1.125) << "one machine";
  EXPECT_DOUBLE_EQ(named(v2, "v2-32", "us-central1-a")->price.amount->count(), 16 * 1.5) << "a pod's chips";
  EXPECT_EQ(named(v2, "v2-32", "us-central1-b"), nullptr) << "no pods there";
}

TEST(Offer, zones_that_two_sources_name_are_offers_once) {
  for (const char* accelerator : {"v2", "v5e", "v6e", "h100"}) {
    std::set<std::string> seen;
    for (const Offer& offer : offers({.accelerators = {accelerator}, .max_chips = 16}))
      EXPECT_TRUE(seen.insert(offer.name() + " " + offer.zone).second) << offer.name() << " " << offer.zone;
  }
}

TEST(Offer, cpu_machines_and_the_one_at_hand) {
  EXPECT_EQ(named(offers({}), "e2-medium", ""), nullptr);
  const std::vector<Offer> all = offers({.regions = {"us-central1"}, .cpu_machines = true});
  const Offer* e2 = named(all, "e2-medium", "");
  ASSERT_NE(e2, nullptr);
  EXPECT_NEAR(e2->price.amount->count(), 0.0335, 1e-4);
  EXPECT_EQ(e2->accelerators, 0);
  const Offer own = own_machine("this-machine", "2026-11-22");
  EXPECT_EQ(own.price.amount, DollarsPerHour(0));
  EXPECT_EQ(own.provisioning, Provisioning::own);
  EXPECT_TRUE(own.price.known());
}

TEST(Offer, ones_own_machines_and_negotiated_prices) {
  const std::string yaml =
      "systole_catalog: 1\n"
      "machines:\n"
      "  - { machine: dgx, kind: gpu, accelerator: h100, accelerators: 8, zones: [lab], source: me, date: 2026-11-01 "
      "}\n"
      "  - { machine: old, kind: gpu, accelerator: v100, accelerators: 4, zones: [lab], source: me, date: 2026-11-01 "
      "}\n"
      "prices:\n"
      "  - { per: machine, item: dgx, region: lab, own: $12/h, source: our books, date: 2026-11-01 }\n"
      "  - { per: machine, item: a3-highgpu-8g, region: us-central1, on_demand: $70/h, source: contract, date: "
      "2026-01-01 }\n";
  CatalogTables tables = CatalogTables::read(std::vector<CatalogFile>{{"own.yaml", yaml}}).value();
  const auto found = find_offers(tables, catalog(), {.accelerators = {"h100"}}).value();
  ASSERT_NE(named(found, "dgx", "lab"), nullptr);
  EXPECT_EQ(named(found, "dgx", "lab")->price.amount, DollarsPerHour(12));
  EXPECT_EQ(named(found, "dgx", "lab")->provisioning, Provisioning::own);
  EXPECT_EQ(named(found, "a3-highgpu-8g", "us-central1-a")->price.amount, DollarsPerHour(70)) << "older, and one's own";
  EXPECT_NEAR(named(found, "a3-highgpu-8g", "us-east4-a")->price.amount->count(), 88.5558, 1e-3);
  const auto v100 = find_offers(tables, catalog(), {.accelerators = {"v100"}, .zones = {"lab"}}).value();
  ASSERT_EQ(v100.size(), 1U);
  EXPECT_EQ(to_string(v100[0].price), "unknown") << "nobody said what it costs";
}

TEST(Offer, unknown_prices_come_last_and_are_below_no_limit) {
  std::vector<Offer> v6e = offers({.accelerators = {"v6e"}, .max_chips = 4});
  sort_by_price(v6e);
  ASSERT_GT(v6e.size(), 2U);
  EXPECT_TRUE(v6e.front().price.known());
  EXPECT_FALSE(v6e.back().price.known()) << "asia-east1 has none";
  bool unknown = false;
  for (const Offer& offer : v6e) {
    EXPECT_FALSE(unknown && offer.price.known());
    unknown = unknown || !offer.price.known();
  }
  for (const Offer& offer : offers({.accelerators = {"v6e"}, .max_price = DollarsPerHour(3)})) {
    ASSERT_TRUE(offer.price.known());
    EXPECT_LE(*offer.price.amount, DollarsPerHour(3));
  }
}

TEST(Offer, what_is_asked_and_unknown_is_said_with_the_nearest) {
  const auto refused = [](const OfferFilter& filter) { return find_offers(builtin(), catalog(), filter).error(); };
  EXPECT_NE(refused({.accelerators = {"h1000"}}).hint.find("'h100'"), std::string::npos);
  EXPECT_NE(refused({.regions = {"us-central"}}).hint.find("'us-central1'"), std::string::npos);
  EXPECT_NE(refused({.zones = {"us-east5-x"}}).hint.find("'us-east5-a'"), std::string::npos);
}

}  // namespace
}  // namespace systole

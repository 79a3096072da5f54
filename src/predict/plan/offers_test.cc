#include "predict/plan/offers.h"

#include <gtest/gtest.h>

#include <set>

#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

class Offers : public testing::Test {
 protected:
  Result<ClusterOffers> asked(const std::string& target, OfferRules rules = {}) {
    rules.stack = builtin_stacks()[0];
    return planned_offers(tables_, catalog(), std::vector<std::string>{target}, rules);
  }
  std::vector<ClusterOffer> of(const std::string& target, const OfferRules& rules = {}) {
    return asked(target, rules).value().offers;
  }
  void expect_refused(const std::string& target, const OfferRules& rules, ErrorKind kind, const std::string& message,
                      const std::string& hint) {
    const Result<ClusterOffers> made = asked(target, rules);
    ASSERT_FALSE(made.ok()) << target;
    EXPECT_EQ(made.error().kind, kind) << made.error().message;
    EXPECT_NE(made.error().message.find(message), std::string::npos) << made.error().message;
    EXPECT_NE(made.error().hint.find(hint), std::string::npos) << made.error().hint;
  }
  CatalogTables tables_ = CatalogTables::read().value();
};

TEST_F(Offers, machines_have_their_devices_network_and_lowest_price) {
  const std::vector<ClusterOffer> found = of("a3-highgpu-8g:8");
  ASSERT_EQ(found.size(), 1u);
  const ClusterOffer& offer = found[0];
  EXPECT_EQ(offer.offered.name, "8 x a3-highgpu-8g (64 h100)");
  EXPECT_EQ(offer.offered.cluster.devices, 64);
  EXPECT_EQ(offer.offered.cluster.host, 8);
  EXPECT_EQ(offer.offered.cluster.domain, 8);
  EXPECT_DOUBLE_EQ(offer.offered.cluster.network.count(), 12.5e9);  // four cards of 200 Gbit/s for eight
  // Eight times the lowest price of one in any zone.
  OfferFilter filter;
  filter.accelerators = {"h100"};
  filter.machine = "a3-highgpu-8g";
  filter.provisioning = {Provisioning::on_demand};
  std::vector<Offer> all = find_offers(tables_, catalog(), filter).value();
  sort_by_price(all);
  ASSERT_TRUE(offer.offered.price.has_value());
  EXPECT_NEAR(offer.offered.price->count(), 8 * all.front().price.amount->count(), 1e-9);
  EXPECT_EQ(offer.zone, all.front().zone);
  EXPECT_FALSE(offer.price.dated.date.empty());
  EXPECT_FALSE(offer.price.dated.source.empty());
}

TEST_F(Offers, chips_come_in_the_machines_that_hold_them) {
  const std::vector<ClusterOffer> found = of("h100:64");
  ASSERT_FALSE(found.empty());
  for (const ClusterOffer& one : found) {
    EXPECT_EQ(one.chips, 64);
    EXPECT_EQ(one.machines, 8) << one.target;
  }
  // Available by spot only, so its on-demand price is unknown.
  const std::vector<ClusterOffer> few = of("h100:4");
  ASSERT_EQ(few.size(), 1u);
  EXPECT_EQ(few[0].machine, "a3-highgpu-4g");
  EXPECT_FALSE(few[0].offered.price.has_value());
  EXPECT_TRUE(few[0].price.note.starts_with("it is not had on demand, only by spot (from $")) << few[0].price.note;
  EXPECT_NE(few[0].price.note.find(" or flex_start ("), std::string::npos) << few[0].price.note;
  EXPECT_EQ(of("h100:64@a3-edgegpu-8g")[0].target, "a3-edgegpu-8g:8");
}

// T4 and V100 multiply f16, but not bf16.
TEST_F(Offers, of_chips_without_bf16_nothing_is_priced_in_it) {
  for (const std::string chip : {"t4", "v100"}) {
    expect_refused(chip + ":4", {}, ErrorKind::unsupported, chip + " has no bf16", "--set train.precision=f32");
    OfferRules half;
    half.in_f16 = true;
    EXPECT_GE(of(chip + ":4", half).size(), 1u);
    OfferRules wide;
    wide.products = {ProductType::f32};
    EXPECT_GE(of(chip + ":4", wide).size(), 1u);
  }
  const ClusterOffers any = asked("any").value();
  const auto left_out = [&](const std::string& name) {
    return std::ranges::any_of(any.left_out, [&](const auto& one) { return one.first == name; });
  };
  EXPECT_TRUE(left_out("t4") && left_out("v100"));
}

TEST_F(Offers, slices_by_shape_name_and_chips_are_one) {
  const std::vector<ClusterOffer> by_shape = of("v5p:4x4x4"), by_name = of("v5p-128"), by_chips = of("v5p:64");
  for (const auto* found : {&by_shape, &by_name, &by_chips}) {
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ((*found)[0].target, "v5p:4x4x4");
    EXPECT_EQ((*found)[0].offered.cluster.torus, (std::vector<std::int64_t>{4, 4, 4}));
    EXPECT_EQ((*found)[0].offered.cluster.devices, 64);
    EXPECT_EQ((*found)[0].offered.price, by_shape[0].offered.price);
  }
  const ClusterOffer two = of("v5p:4x4x4:2")[0];
  EXPECT_EQ(two.offered.cluster.devices, 128);
  EXPECT_EQ(two.offered.cluster.domain, 64);
  EXPECT_NEAR(two.offered.price->count(), 2 * by_shape[0].offered.price->count(), 1e-9);
  // A shape without a name of its own costs the price of its chips.
  const ClusterOffer other = of("v5p:4x4x20")[0];
  EXPECT_NEAR(other.offered.price->count(), 5 * by_shape[0].offered.price->count(), 1e-6);
}

TEST_F(Offers, several_are_asked_for_by_commas_and_none_comes_twice) {
  EXPECT_EQ(of("v5p-128, v5p:4x4x4, b200:8").size(), 2u);
}

TEST_F(Offers, any_is_all_that_has_a_price) {
  OfferRules rules;
  rules.chips_at_most = 16;
  const ClusterOffers found = asked("any", rules).value();
  std::set<std::string> accelerators;
  for (const ClusterOffer& one : found.offers) {
    EXPECT_TRUE(one.offered.price.has_value()) << one.target;
    EXPECT_LE(one.chips, 16) << one.target;
    accelerators.insert(one.accelerator);
    EXPECT_EQ(of(one.target, rules).front().target, one.target) << "asks for it and nothing else";
  }
  EXPECT_TRUE(accelerators.contains("h100") && accelerators.contains("v5p") && accelerators.contains("l4"));
}

TEST_F(Offers, places_are_kept_to) {
  OfferRules rules;
  rules.regions = {"us-central1"};
  const ClusterOffer here = of("a3-highgpu-8g:1", rules)[0];
  EXPECT_EQ(here.price.region, "us-central1");
  EXPECT_GE(here.offered.price->count(), of("a3-highgpu-8g:1")[0].offered.price->count());
}

TEST_F(Offers, what_cannot_be_had_is_refused_with_what_can) {
  expect_refused("h10:8", {}, ErrorKind::not_found, "called 'h10'", "h100");
  expect_refused("a3-highgpu-9g:8", {}, ErrorKind::not_found, "a3-highgpu-9g", "a3-highgpu-");
  expect_refused("v5p:3x5x7", {}, ErrorKind::invalid, "there is no slice v5p:3x5x7", "the nearest are v5p:");
  expect_refused("v5p:65", {}, ErrorKind::invalid, "no slice of 65 chips", "v5p:64");
  expect_refused("h100:8@a2-highgpu-8g", {}, ErrorKind::invalid, "a2-highgpu-8g cannot have h100", "a3-highgpu-8g");
  expect_refused("b200:12", {}, ErrorKind::invalid, "12 is no multiple", "b200:8 or 16");
  expect_refused("g4-standard-6", {}, ErrorKind::invalid, "1/8 x rtx-pro-6000", "whole accelerators");
  expect_refused("h100", {}, ErrorKind::invalid, "how many", "h100:8");
  expect_refused("h100:-1", {}, ErrorKind::invalid, "'-1' is no number", "h100:64");
  expect_refused("h100:99999999999999999999", {}, ErrorKind::invalid, "is no number", "h100:64");
  expect_refused("", {}, ErrorKind::invalid, "is no accelerator", "h100:64");
  expect_refused(",", {}, ErrorKind::invalid, "is no accelerator", "h100:64");
  expect_refused("this", {}, ErrorKind::invalid, "without --on", "systole plan");
}

TEST_F(Offers, rules_that_contradict_are_both_named) {
  OfferRules few;
  few.chips_at_most = 32;
  expect_refused("v5p-128", few, ErrorKind::invalid, "64 chips, and --chips-at-most allows 32", "--chips-at-most 64");
  OfferRules places;
  places.regions = {"europe-west4"};
  places.zones = {"us-central1-a"};
  expect_refused("h100:8", places, ErrorKind::invalid,
                 "--zone us-central1-a lies in us-central1, and --region allows europe-west4", "--region us-central1");
  places.zones.clear();
  places.regions = {"us-centrall1"};
  expect_refused("h100:8", places, ErrorKind::not_found, "no region 'us-centrall1'", "us-central1");
  places.regions = {"africa-south1"};
  expect_refused("v5p-128", places, ErrorKind::not_found, "in africa-south1", "it is in ");
}

TEST_F(Offers, next_sizes_can_be_asked_for) {
  for (const char* target : {"a3-highgpu-8g:2", "v5p:4x4x4", "v5e:16", "t4:8"}) {
    OfferRules rules;
    rules.in_f16 = std::string_view(target) == "t4:8";  // t4 has no bf16
    const ClusterOffer offer = of(target, rules)[0];
    const NextSizes next = next_sizes(tables_, catalog(), offer).value();
    EXPECT_GT(of(next.up, rules)[0].chips, offer.chips) << target << " " << next.up;
    EXPECT_LT(of(next.down, rules)[0].chips, offer.chips) << target << " " << next.down;
  }
}

}  // namespace
}  // namespace systole

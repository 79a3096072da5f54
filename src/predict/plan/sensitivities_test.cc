#include "predict/plan/sensitivities.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

constexpr const char* kModel =
    "family: llama, layers: 1, width: 64, heads: 2, kv_heads: 1, mlp: 128, context: 32, vocabulary: 288";

class Sensitivities : public testing::Test {
 protected:
  std::vector<Sensitivity> of(const Workload& workload, const std::string& target) {
    const Composer composer(workload, target_of_accelerators());
    OfferRules rules;
    rules.stack = stack_of(builtin_stacks(), "");
    if (workload.train.precision.compute == DType::f32) rules.products = {ProductType::f32};
    ChoiceRequest request;
    request.offers = planned_offers(tables_, catalog(), std::vector<std::string>{target}, rules).value().offers;
    request.steps = 10;
    chosen_ = *search_alone(composer, request, request.offers[0]).best;
    return sensitivities({tables_, catalog(), rules, composer, request}, chosen_);
  }
  static const Sensitivity& named(const std::vector<Sensitivity>& all, const std::string& what) {
    const auto found = std::ranges::find(all, what, &Sensitivity::what);
    CHECK(found != all.end(), "no '{}'", what);
    return *found;
  }
  Estimated chosen_;
  CatalogTables tables_ = CatalogTables::read().value();
};

TEST_F(Sensitivities, one_thing_differs_and_the_layout_stays) {
  const std::vector<Sensitivity> all = of(tiny_workload(kModel, 1), "h100:1");
  EXPECT_EQ(named(all, "products in fp8").offered.kernels.products, ProductType::fp8);
  EXPECT_NE(named(all, "products in fp8").step, Seconds(chosen_.step.seconds));
  EXPECT_LE(named(all, "recompute blocks").memory, chosen_.memory.total());
  EXPECT_GE(named(all, "recompute blocks").step, Seconds(chosen_.step.seconds));
  for (const Sensitivity& one : all) EXPECT_EQ(one.total, one.step * 10);
}

TEST_F(Sensitivities, another_region_is_as_fast_and_never_cheaper_than_the_cheapest) {
  const std::vector<Sensitivity> all = of(tiny_workload(kModel, 1), "a2-highgpu-1g:1");
  std::size_t regions = 0;
  for (const Sensitivity& one : all) {
    if (one.of != Sensitivity::Of::region) continue;
    ++regions;
    EXPECT_EQ(one.step, Seconds(chosen_.step.seconds));
    EXPECT_GE(*one.dollars, *chosen_.dollars);
  }
  EXPECT_EQ(regions, kOtherRegions);
}

TEST_F(Sensitivities, a_job_in_f32_is_held_against_bf16) {
  Workload workload = tiny_workload(kModel, 1);
  workload.train.precision.compute = DType::f32;
  const std::vector<Sensitivity> all = of(workload, "v5e:1");
  EXPECT_LT(named(all, "computed in bf16").memory, chosen_.memory.total());
  EXPECT_EQ(named(all, "computed in bf16").offered.kernels.products, ProductType::bf16);
}

}  // namespace
}  // namespace systole

#include "predict/plan/scaling.h"

#include <gtest/gtest.h>

#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

ScaleCurve curve_of(const std::vector<std::pair<std::int64_t, double>>& speeds) {
  ScaleCurve curve;
  for (const auto& [chips, speed] : speeds) {
    ScalePoint point;
    point.chips = chips;
    if (speed > 0) point.best.emplace();
    point.tokens_per_second = speed;
    curve.points.push_back(point);
  }
  judge(curve);
  return curve;
}

TEST(Scaling, stops_where_what_is_added_does_not_pay) {
  const ScaleCurve curve = curve_of({{8, 100}, {16, 190}, {32, 340}, {64, 540}, {128, 1080}});
  EXPECT_DOUBLE_EQ(*curve.points[1].added, 0.9);
  EXPECT_DOUBLE_EQ(curve.points[1].efficiency, 0.95);
  EXPECT_NEAR(*curve.points[2].added, 150.0 / 190, 1e-12);
  EXPECT_EQ(curve.stop, 1u) << "150 of 190 is less than 80%, and 128 chips are held against 16, not against 64";
  EXPECT_EQ(curve.reason, "the 16 chips more of 32 add 79% of the speed that as many had at 16, and 80% pays");
}

TEST(Scaling, an_awkward_size_between_stops_nothing) {
  const ScaleCurve curve = curve_of({{64, 688}, {100, 695}, {128, 1371}});
  EXPECT_LT(*curve.points[1].added, 0.1);
  EXPECT_EQ(curve.stop, 2u);
  EXPECT_EQ(curve.reason, "no larger size was asked for that fits: so far all pay");
}

TEST(Scaling, sizes_that_do_not_fit_are_stepped_over) {
  const ScaleCurve curve = curve_of({{8, 0}, {16, 100}, {32, 0}, {64, 400}});
  EXPECT_FALSE(curve.points[1].added.has_value());
  EXPECT_DOUBLE_EQ(*curve.points[3].added, 1);
  EXPECT_EQ(curve.stop, 3u);
  EXPECT_EQ(curve.reason, "no larger size was asked for that fits: so far all pay");
  EXPECT_FALSE(curve_of({{8, 0}}).stop.has_value());
  EXPECT_EQ(curve_of({{8, 0}}).reason, "no size fits");
}

class ScalingSearch : public testing::Test {
 protected:
  Result<std::vector<ScaleCurve>> scaled(std::vector<std::string> hardware, std::vector<std::int64_t> sizes,
                                         bool batch_scales = false) {
    const OfferRules rules{{}, {}, 1024, stack_of(builtin_stacks(), "")};
    return scale({tables_, catalog(), rules, composer_}, {std::move(hardware), std::move(sizes), batch_scales});
  }
  const Workload workload_ = tiny_workload(
      "family: llama, layers: 1, width: 32, heads: 2, kv_heads: 1, mlp: 64, context: 16, vocabulary: 288", 1);
  const Composer composer_{workload_, target_of_accelerators()};
  CatalogTables tables_ = CatalogTables::read().value();
};

TEST_F(ScalingSearch, each_size_is_the_fastest_of_its_own_search) {
  const ScalePoint point = scaled({"v5e"}, {1}).value()[0].points[0];
  ASSERT_TRUE(point.best.has_value()) << point.refused;
  const ChoiceRequest request;
  EXPECT_EQ(point.best->step.seconds, search_alone(composer_, request, *point.offer).best->step.seconds);
  EXPECT_NEAR(point.million_tokens->count(), point.offer->offered.price->count() / 3600 / point.tokens_per_second * 1e6,
              1e-9);
}

TEST_F(ScalingSearch, the_batch_scales_where_it_is_asked_to) {
  const std::vector<ScaleCurve> curves = scaled({"v5e"}, {1, 4}, true).value();
  EXPECT_EQ(curves[0].points[0].batch, 1);
  EXPECT_EQ(curves[0].points[1].batch, 4);
  EXPECT_EQ(curves[0].points[1].best->candidate.devices(), 4);
  EXPECT_EQ(curves[0].points[1].tokens_per_second, 4 * 16 / curves[0].points[1].best->step.seconds);
}

TEST_F(ScalingSearch, what_cannot_be_had_is_said_in_its_place) {
  const std::vector<ScaleCurve> curves = scaled({"v5e", "a2-highgpu-2g"}, {1, 3}).value();
  EXPECT_NE(curves[0].points[1].refused.find("no slice of 3 chips"), std::string::npos) << curves[0].points[1].refused;
  EXPECT_NE(curves[1].points[0].refused.find("a2-highgpu-2g has 2 x a100"), std::string::npos)
      << curves[1].points[0].refused;
  EXPECT_FALSE(scaled({"v5e:4"}, {1}).ok());
  EXPECT_FALSE(scaled({"v5"}, {1}).ok());
  EXPECT_FALSE(scaled({"v5e"}, {4, 4}).ok());
}

TEST_F(ScalingSearch, more_chips_than_a_slice_has_are_several_slices) {
  const std::vector<ScaleCurve> curves = scaled({"v5e"}, {512}).value();
  EXPECT_EQ(curves[0].points[0].offer->target, "v5e:16x16:2");
  EXPECT_TRUE(curves[0].points[0].refused.starts_with("no layout cuts a batch of 1 ")) << curves[0].points[0].refused;
}

}  // namespace
}  // namespace systole

// The text beside a prediction names the rows that it comes from, and says so where there are none.

#include "predict/plan/prediction_error.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(PredictionError, words_name_the_rows_that_were_compared) {
  const KnownError own{"megatron-core", "dense", "h100", "step_time", 79, 0.083, 0.1189, 0.04};
  const PredictionKind kind{"megatron-core", "dense", "h100"};
  EXPECT_EQ(known_error_words(kind, &own),
            "mean error of 79 published rows (dense) of megatron-core on h100, fitted without their source; 90% lie "
            "within 12%");
  EXPECT_EQ(plus_minus(&own), " ± 8.3%");
  const KnownError wider{"megatron-core", "dense", "any", "step_time", 85, 0.2, 0.3, 0.1};
  EXPECT_TRUE(
      known_error_words(kind, &wider).starts_with("few or no published rows of megatron-core on h100 (dense); "))
      << known_error_words(kind, &wider);
  const KnownError unseen{"unseen", "dense", "h100", "step_time", 151, 0.158, 0.289, {}};
  EXPECT_EQ(
      known_error_words({"default", "dense", "h100"}, &unseen),
      "mean error of 151 published rows (dense) on h100, each as if its stack had never been seen; 90% lie within "
      "29%");
}

TEST(PredictionError, what_nobody_has_published_is_unknown) {
  const PredictionKind kind{"megatron-core", "f32", "h100"};
  EXPECT_EQ(known_error_of(kind, "step_time"), nullptr);
  EXPECT_EQ(plus_minus(nullptr), "");
  EXPECT_EQ(known_error_words(kind, nullptr), "error unknown: no published rows tell of megatron-core on h100 (f32)");
  EXPECT_TRUE(known_error_node(kind, nullptr).find("mean")->is_null());
}

TEST(PredictionError, work_is_of_the_workload_and_the_kernels) {
  Workload workload;
  HardwareOption offered;
  offered.stack.name = "fsdp";
  offered.cluster.chip.name = "a100";
  EXPECT_EQ(prediction_kind(workload, offered).work, "f32");
  workload.train.precision.compute = DType::bf16;
  EXPECT_EQ(prediction_kind(workload, offered).work, "dense");
  offered.kernels.products = ProductType::fp8;
  EXPECT_EQ(prediction_kind(workload, offered).work, "fp8");
  workload.model.as<DecoderSpec>().moe.experts = 8;
  EXPECT_EQ(prediction_kind(workload, offered).work, "moe");
}

}  // namespace
}  // namespace systole

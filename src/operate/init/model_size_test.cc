// The size of a first model grows with the text and with the available time.
#include "operate/init/model_size.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(ModelSizes, are_of_models_that_there_can_be) {
  std::int64_t before = 0;
  for (const ModelSize& size : model_sizes()) {
    EXPECT_EQ(size.width % size.heads, 0);
    EXPECT_EQ(size.batch % 2, 0) << "two ranks divide it";
    EXPECT_GT(size.layers * size.width * size.width, before) << "smallest first";
    before = size.layers * size.width * size.width;
  }
}

TEST(ModelSizes, are_fed_by_ten_passes_at_the_most) {
  EXPECT_TRUE(feeds(2'000'000, 1'000'000));
  EXPECT_FALSE(feeds(1'999'999, 1'000'000));
}

TEST(StepsOfAFirstRun, are_twenty_tokens_a_parameter_within_ten_passes) {
  const ModelSize size{.layers = 2, .width = 64, .heads = 2, .context = 128, .batch = 8, .rate = "1e-3"};
  EXPECT_EQ(steps_for(size, 102'400, 1'000'000'000), 2000) << "20 × 102,400 of 1,024 a step";
  EXPECT_EQ(steps_for(size, 102'400, 10'240), 100) << "ten passes";
  EXPECT_EQ(steps_for(size, 1, 1), 1);
}

TEST(StepsOfAFirstRun, end_in_time) {
  EXPECT_EQ(steps_in_time(100, Seconds(1.0)), 100);
  EXPECT_EQ(steps_in_time(10'000, Seconds(1.0)), 600);
  EXPECT_EQ(steps_in_time(10'000, Seconds(1e6)), 1);
  EXPECT_EQ(steps_in_time(10'000, Seconds(0.0)), 10'000);
}

}  // namespace
}  // namespace systole

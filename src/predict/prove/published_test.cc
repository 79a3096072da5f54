#include "predict/prove/published.h"
#include "ground/base/testing/places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace systole::prove {
namespace {

std::string row(const char* slice, double measured, double compute) {
  return fmt::format(
      R"({{"published": "a step", "source": "a page", "on": "{}", "step_s": {}, "scheduled": {{"module": "m",
          "compiler": "c", "date": "2026-11-22", "compute_s": {}, "kernels_s": 0, "collectives_s": 5, "exposed_s": 0.5,
          "copies_s": 0.25}}}})",
      slice, measured, compute);
}

TEST(Published, ratios_are_of_all_that_the_schedule_takes) {
  const std::string text = "[" + row("v5e:2x2", 1, 0.25) + "," + row("v5e:4x4", 2, 1.65) + "," +
                           row("v6e:2x2", 1, 0.75) +
                           R"(, {"published": "not proved", "source": "a page", "on": "v4:2x2x1", "step_s": 1}])";
  const std::vector<PublishedStep> steps = read_published(text).value();
  ASSERT_EQ(steps.size(), 3U);  // unproved rows do not count
  EXPECT_DOUBLE_EQ(steps[0].ratio(), 1.0);
  EXPECT_DOUBLE_EQ(steps[1].ratio(), 1.2);
  EXPECT_EQ(steps[2].chip(), "v6e");
  EXPECT_EQ(known_error(steps, "v5e"),
            "of 3 published steps it makes 1.00 to 1.50 times what was measured, 1.20 at the median; of 2 on v5e 1.00 "
            "to 1.20");
  EXPECT_EQ(known_error(steps, "v4"),
            "of 3 published steps it makes 1.00 to 1.50 times what was measured, 1.20 at the median; none of them is "
            "on v4");
  EXPECT_EQ(known_error({}, "v4"), "it was never held beside a published step");
  const Node node = known_ratio_node(steps, "v5e");
  EXPECT_EQ(node.find("rows")->text(), "3");
  EXPECT_DOUBLE_EQ(node.find("same_chip")->find("highest")->as_double().value(), 1.2);
  EXPECT_EQ(known_ratio_node(steps, "v4").find("same_chip"), nullptr);
}

TEST(Published, a_document_that_is_none_is_refused) {
  EXPECT_FALSE(read_published("[").ok());
  EXPECT_FALSE(read_published("[{\"scheduled\": {}}]").ok());
  EXPECT_FALSE(read_published("[" + row("v5e:2x2", 0, 1) + "]").ok());
}

// Prints the schedules' errors, row by row, for CI. XlaPublished, with full counts, checks that the compiler still says
// so.
TEST(Published, at_least_eight_steps_stand_beside_their_schedules) {
  EXPECT_GE(published_steps().size(), 8U);
  for (const PublishedStep& step : published_steps()) {
    fmt::print("{:<12} on {:<11} {:.2f} s scheduled, {:.2f} s measured: {:.2f}\n", step.name, step.slice,
               step.scheduled.total().count(), step.measured.count(), step.ratio());
    EXPECT_GT(step.scheduled.compute, Seconds()) << step.name;
    EXPECT_LE(step.scheduled.exposed, step.scheduled.collectives * (1 + 1e-9)) << step.name;
  }
}

TEST(Published, the_file_is_built_in_as_it_is) {
  std::stringstream file;
  file << std::ifstream(SYSTOLE_SOURCE_DIR "/data/xla/published.json").rdbuf();
  const std::vector<PublishedStep> now = read_published(file.str()).value(), &built = published_steps();
  ASSERT_EQ(built.size(), now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    EXPECT_EQ(built[i].name, now[i].name);
    EXPECT_EQ(built[i].scheduled, now[i].scheduled);
    EXPECT_FALSE(now[i].source.empty());
  }
}

}  // namespace
}  // namespace systole::prove

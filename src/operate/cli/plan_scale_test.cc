// `systole plan --on CHIPS --scale SIZES` with a model of milliseconds.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/testing/plan_job.h"

namespace systole::cli {
namespace {

class PlanScale : public PlanJob {};

TEST_F(PlanScale, sizes_stand_beside_each_other_with_where_to_stop) {
  const Captured seen = plan("--on v5e,v6e --scale 1,4");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find("efficiency"), std::string::npos) << seen.out;
  for (const char* words : {"a v5e, b v6e", "┬", "\nv5e: stop at ", "\nv6e: stop at ", "published rows", "1M tokens"})
    EXPECT_NE(seen.out.find(words), std::string::npos) << words << "\n" << seen.out;
}

TEST_F(PlanScale, the_document_has_every_size) {
  const Captured seen = plan("--on v5e --scale 1,3 --scale-batch --json");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node document = parse_json(seen.out, "stdout").value();
  const std::span<const Node> points = document.find("curves")->items()[0].find("points")->items();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].find("efficiency")->text(), "1");
  EXPECT_GT(points[0].find("tokens_per_second")->as_double().value(), 0);
  EXPECT_NE(points[1].find("refused")->text().find("no slice of 3 chips"), std::string::npos);
}

TEST_F(PlanScale, charts_are_written_where_they_are_asked_for) {
  ASSERT_EQ(plan("--on v5e --scale 1,4 --charts charts").exit.code, 0);
  ASSERT_EQ(plan("--on v5e:1,v6e:1 --best 1 --charts charts").exit.code, 0);
  EXPECT_EQ(systole_.shell("ls charts").out, "front.svg\nscaling.svg\ntime.svg\n");
  const std::string scaling = systole_.shell("cat charts/scaling.svg").out,
                    time = systole_.shell("cat charts/time.svg").out;
  EXPECT_TRUE(scaling.starts_with("<svg ") && scaling.ends_with("</svg>\n"));
  EXPECT_EQ(scaling.find("nan"), std::string::npos);
  EXPECT_NE(time.find("v6e:1x1"), std::string::npos) << "what lost stands beside the choice";
  systole_.write("file", "");
  expect_refused("--on v5e --scale 1 --charts file", 1, "--charts: no folder 'file' can be made", "--charts charts");
}

TEST_F(PlanScale, what_is_wrong_is_said_with_what_is_right) {
  expect_refused("--on v5e:4 --scale 1,4", 2, "--scale says how many", "--on v5e --scale");
  expect_refused("--on v5e --scale 4,4", 2, "--scale names 4 twice", "--scale 8");
  expect_refused("--on v5e --scale 0", 2, "--scale", "--help");
  expect_refused("--scale 4", 2, "--on", "--help");
  expect_refused("--on v5e --scale 4 --objective cheapest", 2, "excludes", "--help");
  expect_refused("--on v5e --scale-batch", 2, "--scale", "--help");
  expect_refused("--on h10 --scale 8", 2, "called 'h10'", "h100");
}

TEST_F(PlanScale, where_no_size_can_be_had_the_answer_is_no) {
  const Captured seen = plan("--on v5e --scale 3");
  EXPECT_EQ(seen.exit.code, 1) << seen.err;
  EXPECT_NE(seen.out.find("no slice of 3 chips"), std::string::npos) << seen.out;
}

}  // namespace
}  // namespace systole::cli

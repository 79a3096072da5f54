#include "execute/serve/balance/labelled_metrics.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(LabelledMetrics, each_sample_says_whose_it_is_and_a_metric_stands_together) {
  const std::string text = "# HELP a Of it.\n# TYPE a gauge\na{m=\"x}y\"} 1\n# HELP b More.\n# TYPE b counter\nb 2.5\n";
  EXPECT_EQ(labelled_metrics({{0, text}, {1, text}}),
            "# HELP a Of it.\n# TYPE a gauge\na{m=\"x}y\",replica=\"0\"} 1\na{m=\"x}y\",replica=\"1\"} 1\n"
            "# HELP b More.\n# TYPE b counter\nb{replica=\"0\"} 2.5\nb{replica=\"1\"} 2.5\n");
  EXPECT_EQ(labelled_metrics({{3, "a{} 1"}}), "a{replica=\"3\"} 1\n");
}

TEST(LabelledMetrics, what_is_no_metric_is_left_out) {
  EXPECT_EQ(labelled_metrics({{0, ""}, {1, "\n\n# a note\n<html>\na{ 1\na\n{} 2\n# HELP \n"}}), "");
}

}  // namespace
}  // namespace systole

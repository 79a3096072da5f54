#include "ground/base/requirement.h"

#include <gtest/gtest.h>

#include <limits>

namespace systole {
namespace {

TEST(Requirement, is_a_metric_a_sign_and_a_bound) {
  const auto holds = [](const char* text, double value) { return parse_requirement(text).value().met_by(value); };
  EXPECT_TRUE(holds("accuracy>=0.71", 0.71));
  EXPECT_TRUE(holds("accuracy<=0.71", 0.71));
  EXPECT_FALSE(holds("accuracy>0.71", 0.71));
  EXPECT_FALSE(holds("accuracy<0.71", 0.71));
  EXPECT_TRUE(holds("accuracy>0.7", 0.71));
  EXPECT_TRUE(holds("accuracy<1e0", 0.71));
  for (const char* each : {"a>=0", "a<=0", "a>0", "a<0"})
    EXPECT_FALSE(holds(each, std::numeric_limits<double>::quiet_NaN())) << each;
  EXPECT_EQ(parse_requirement("v1.prose.acc,none>=-1").value().metric, "v1.prose.acc,none");
}

TEST(Requirement, anything_else_is_refused) {
  for (const char* wrong : {"", "accuracy", "accuracy=1", "accuracy>=", ">=1", "a>=b", "a>=nan", "a>=inf", "a>>1",
                            "a==1", "a b>1", "a\n>1", "\xff>1", "a>", "<"})
    EXPECT_EQ(parse_requirement(wrong).error().kind, ErrorKind::invalid) << wrong;
}

}  // namespace
}  // namespace systole

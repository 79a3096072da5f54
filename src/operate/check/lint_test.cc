#include "operate/check/lint.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

Workload workload(const std::string& train, const std::string& rest = "checkpoint: { every: 10 }\n",
                  const std::string& held_out = ", held_out_rows: 8") {
  return read_workload(
             "systole: 1\nname: x\nmodel: { family: mlp, inputs: 4, outputs: 2 }\ndata: { kind: linear, rows: 64" +
                 held_out + " }\ntrain: { steps: 100, " + train + " }\n" + rest,
             "x.yaml")
      .value();
}

std::vector<std::string> rules(const Workload& w) {
  std::vector<std::string> names;
  for (const Lint& l : lint(w)) names.push_back(l.rule);
  return names;
}

using Rules = std::vector<std::string>;
constexpr const char* kSgd = "optimizer: { kind: sgd, rate: 0.1 }";

TEST(Lint, nothing_to_say) { EXPECT_EQ(rules(workload(std::string("batch: 8, ") + kSgd)), Rules{}); }

TEST(Lint, nothing_held_out) {
  EXPECT_EQ(rules(workload(std::string("batch: 8, ") + kSgd, "checkpoint: { every: 10 }\n", ", held_out_rows: 0")),
            Rules{"no_held_out"});
}

TEST(Lint, microbatches_that_leave_rows_empty) {
  const std::vector<Lint> found = lint(workload(std::string("batch: 8, microbatches: 3, ") + kSgd));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, "8 rows in 3 microbatches of 3: 1 rows of work are empty");
}

TEST(Lint, a_high_rate_without_clipping) {
  EXPECT_EQ(rules(workload("batch: 8, optimizer: { kind: adamw, rate: 0.1, clip: 0 }")), Rules{"high_rate"});
  EXPECT_EQ(rules(workload("batch: 8, optimizer: { kind: adamw, rate: 0.1, clip: 1 }")), Rules{});
}

}  // namespace
}  // namespace systole

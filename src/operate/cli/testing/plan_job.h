#pragma once
// For tests: `systole plan` of a model whose Programs take milliseconds.

#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {

inline constexpr const char* kTinyPlanJob =
    "systole: 1\nname: tiny\nmodel: { family: llama, layers: 2, width: 32, heads: 2, kv_heads: 1, mlp: "
    "64, context: 16, vocabulary: 288 }\ndata: { train: { files: a.txt }, tokenizer: { vocabulary: 260 } "
    "}\ntrain: { batch: 2, steps: 1000, optimizer: { rate: 1e-3 }, precision: { compute: bf16, reduce: "
    "bf16 } }\n";

class PlanJob : public testing::Test {
 protected:
  PlanJob() { systole_.write("job.yaml", kTinyPlanJob); }
  Captured plan(const std::string& options) const { return systole_.shell("$SYSTOLE plan job.yaml " + options); }
  void expect_refused(const std::string& options, int exit, const std::string& message, const std::string& hint) const {
    const Captured seen = plan(options);
    EXPECT_EQ(seen.exit.code, exit) << seen.out << seen.err;
    EXPECT_NE(seen.err.find(message), std::string::npos) << seen.err;
    const std::size_t hinted = seen.err.find("hint:");
    ASSERT_NE(hinted, std::string::npos) << seen.err;
    EXPECT_NE(seen.err.find(hint, hinted), std::string::npos) << seen.err;
  }
  SystoleRunner systole_;
};

}  // namespace systole::cli

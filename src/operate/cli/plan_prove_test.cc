// `systole plan --on … --prove` with a fake plugin in place of libtpu.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/testing/fake_plugin.h"
#include "operate/cli/testing/plan_job.h"

namespace systole::cli {
namespace {

class PlanProve : public FakePluginTest {
 protected:
  PlanProve() { systole().write("job.yaml", kTinyPlanJob); }
  // A model of one layer, which no pipeline splits; with its own cache.
  Captured plan(const std::string& options, const std::string& fake = "") const {
    return systole().shell("env -u XDG_CACHE_HOME SYSTOLE_XLA_PLUGINS=plugins FAKE_PJRT='v5e " + fake +
                           "' $SYSTOLE plan job.yaml --set train.batch=8 --chips-at-most 4 " + options);
  }
};

constexpr const char* kOneLayer = "--set model.layers=1 --on v5e:2x2 ";

TEST_F(PlanProve, what_the_compiler_says_stands_beside_the_prediction) {
  install();
  const Captured seen = plan(std::string(kOneLayer) + "--prove=2");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  expect_part(seen.out, "memory, as the compiler has it");
  expect_part(seen.out, "  1.12 KiB  fits\n");
  expect_part(seen.out, "compiled by libtpu 0.0.51, PJRT API 0.116");
}

TEST_F(PlanProve, what_does_not_fit_is_not_chosen) {
  install();
  const Captured all = plan(std::string(kOneLayer) + "--json");
  const Node free = *parse_json(all.out, "stdout").value().find("search");
  EXPECT_EQ(free.find("chosen")->find("layout")->text(), "data=4");
  EXPECT_TRUE(free.find("chosen")->find("proof")->is_null());
  const Captured seen = plan(std::string(kOneLayer) + "--prove --json", "whole");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node proved = *parse_json(seen.out, "stdout").value().find("search");
  const Node& chosen = *proved.find("chosen");
  EXPECT_TRUE(chosen.find("layout")->text().starts_with("fsdp=4")) << chosen.find("layout")->text();
  EXPECT_EQ(chosen.find("proof")->find("verdict")->text(), "fits");
  EXPECT_EQ(chosen.find("proof")->find("needed_bytes")->text(), "1150");
  std::size_t refused = 0;
  for (const Node& lost : proved.find("lost")->items()) {
    const Node* proof = lost.find("estimate")->find("proof");
    if (proof->is_map() && proof->find("verdict")->text() == "does_not_fit") {
      ++refused;
      EXPECT_EQ(lost.find("reason")->text(), "libtpu 0.0.51: E1000: Ran out of memory on HBM, 53.22G of 31.24G");
      EXPECT_EQ(lost.find("edit")->text(), "") << "nothing makes it fit";
      EXPECT_EQ(proof->find("why")->text(), "E1000: Ran out of memory on HBM, 53.22G of 31.24G");
    }
  }
  EXPECT_GE(refused, 1u);
}

TEST_F(PlanProve, a_pipeline_keeps_its_prediction_and_says_why) {
  install();
  const Captured seen = plan("--on v5e:2x2 --set train.batch=1 --prove=1");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  expect_part(seen.out, "not proved: a pipeline's stages are Programs of their own");
}

TEST_F(PlanProve, without_a_compiler_it_is_refused_before_anything_is_searched) {
  const Captured seen = plan("--on v5e:2x2 --prove");
  EXPECT_EQ(seen.exit.code, 3) << seen.out;
  expect_part(seen.err, "--prove: nothing that --on names can be proved here: XLA's plugin 'tpu' is not in plugins");
  expect_part(seen.err, "hint: tools/xla-plugins tpu");
  EXPECT_EQ(plan("--on v5e:2x2 --prove=0").exit.code, 2);
}

}  // namespace
}  // namespace systole::cli

// `systole plan --on` with a model of milliseconds: what is said, as text and document, and every refusal.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/plan_job.h"

namespace systole::cli {
namespace {

class PlanOn : public PlanJob {};

TEST_F(PlanOn, tells_the_choice_first_and_why_others_lost) {
  const Captured seen = plan("--on a2-highgpu-2g:1,v5e:1");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  std::size_t at = 0;
  for (const char* words :
       {"tiny: 37,024 parameters", "  layout  ", "  step    ", "  total   ", "  cost    ", "price of 20", "  memory  ",
        "where the time goes", "where the memory goes", "it lost because", "other sizes", " layouts of 2 offers: "}) {
    const std::size_t next = seen.out.find(words, at);
    ASSERT_NE(next, std::string::npos) << words << "\n" << seen.out;
    at = next;
  }
}

TEST_F(PlanOn, the_document_says_the_same_and_its_edits_work) {
  const Captured seen = plan("--on a2-highgpu-2g:1 --best 3 --json --out plan.json");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node document = parse_json(seen.out, "stdout").value();
  const Node* chosen = document.find("chosen");
  ASSERT_TRUE(chosen != nullptr && chosen->is_map());
  double sum = 0;
  for (const Node::Entry& share : chosen->find("seconds_by_share")->entries()) sum += share.value.as_double().value();
  EXPECT_NEAR(sum, chosen->find("step_seconds")->as_double().value(), 1e-9);
  const double hours = chosen->find("total_seconds")->as_double().value() / 3600;
  const Node* price = document.find("offers")->items()[0].find("price");
  EXPECT_NEAR(chosen->find("dollars")->as_double().value(),
              hours * price->find("dollars_per_hour")->as_double().value(), 1e-12);
  for (const char* key : {"step_known_error", "memory_known_error"})
    EXPECT_NE(chosen->find(key)->find("words")->text().find("published rows"), std::string::npos);
  EXPECT_EQ(document.find("lost")->items().size(), 2u);
  for (const Node& lost : document.find("lost")->items()) {
    const Captured shown = systole_.shell("eval $SYSTOLE show topology job.yaml \"" + lost.find("edit")->text() + "\"");
    EXPECT_EQ(shown.exit.code, 0) << lost.find("edit")->text() << "\n" << shown.err;
  }
  const Captured written = systole_.shell("cat plan.json");
  EXPECT_EQ(parse_json(written.out, "plan.json").value().find("chosen")->find("layout")->text(),
            chosen->find("layout")->text());
}

TEST_F(PlanOn, an_option_is_explained_beside_the_choice) {
  const Captured by_number = plan("--on a2-highgpu-1g:1,v5e:1 --explain 1");
  EXPECT_EQ(by_number.exit.code, 0) << by_number.err;
  EXPECT_NE(by_number.out.find("time of a step"), std::string::npos) << by_number.out;
  EXPECT_NE(by_number.out.find("difference"), std::string::npos);
  expect_refused("--on v5e:1 --explain 99", 2, "no option that lost is '99'", "1 to ");
}

TEST_F(PlanOn, nothing_is_written_unless_asked) {
  plan("--on v5e:1");
  EXPECT_EQ(systole_.shell("ls").out, "job.yaml\n");
}

TEST_F(PlanOn, limits_that_nothing_meets_end_with_1_and_what_would) {
  expect_refused("--on v5e:1 --deadline 1s --chips-at-most 4", 1, "deadline missed by ", "--deadline ");
  expect_refused("--on v5e:1 --budget 0.001 --chips-at-most 4", 1, "over budget by ", "--budget ");
  EXPECT_EQ(plan("--on v5e:1 --budget 0.001 --chips-at-most 4 --json").exit.code, 1);
}

TEST_F(PlanOn, what_is_wrong_is_said_with_what_is_right) {
  expect_refused("--on h10:8", 2, "called 'h10'", "h100");
  expect_refused("--on v5e:1 --deadline soon", 2, "--deadline: 'soon'", "30d");
  expect_refused("--on v5e:1 --budget lots", 2, "--budget: 'lots'", "1M");
  expect_refused("--on v5e:1 --stack megatrn", 2, "no profile is called 'megatrn'", "megatron");
  expect_refused("--on v5e:1 --objective quick", 2, "--objective", "--help");
  expect_refused("--objective cheapest", 2, "--on", "--help");
  expect_refused("--on v5e:1 --set train.steps=null --set train.time=1h", 2, "needs steps or tokens", "train.steps=");
  expect_refused("--on v5e:1 --out none/plan.json", 2, "cannot write 'none/plan.json'", "a folder that is there");
}

}  // namespace
}  // namespace systole::cli

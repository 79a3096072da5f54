#include "execute/serve/eval/results.h"

#include <gtest/gtest.h>

#include <cmath>

namespace systole {
namespace {

EvalSuite suite() {
  return {"s.yaml",
          {{.name = "colours", .kind = EvalKind::multiple_choice, .items = std::vector<EvalItem>(4)},
           {.name = "v1.prose", .kind = EvalKind::bits_per_byte, .items = std::vector<EvalItem>(1)}}};
}

EvaluatedModel model(const std::string& name, const std::vector<double>& acc, double bits) {
  const Metric mean = mean_metric("acc", acc), one = mean_metric("bits_per_byte", std::vector<double>{bits});
  return {name, std::nullopt, {{.metrics = {mean, mean, mean}}, {.metrics = {one, one, one}}}};
}

Result<EvalRequirement> required(const char* text) { return requirement_of(parse_requirement(text).value(), suite()); }

TEST(EvalResults, requirements_name_a_task_and_a_metric_of_the_suite) {
  const EvalRequirement least = required("colours.acc_norm>=0.71").value();
  EXPECT_EQ(least.task_index, 0U);
  EXPECT_EQ(least.metric_index, 1U);
  EXPECT_TRUE(least.met_by(0.71));
  EXPECT_FALSE(least.met_by(0.70));
  const EvalRequirement below = required("v1.prose.bits_per_byte<1e0").value();
  EXPECT_EQ(below.task_index, 1U) << "a task's name may have dots";
  EXPECT_FALSE(below.met_by(1));
  EXPECT_EQ(required("acc>=1").error().kind, ErrorKind::invalid);
  EXPECT_EQ(required("colour.acc>=1").error().hint, "did you mean 'colours'?");
  EXPECT_EQ(required("colours.ac>=1").error().kind, ErrorKind::not_found);
}

TEST(EvalResults, every_model_must_meet_every_requirement) {
  const std::vector<EvalRequirement> all{required("colours.acc>=0.5").value(),
                                         required("v1.prose.bits_per_byte<2").value()};
  EXPECT_EQ(unmet(all, {model("a", {1, 1, 0, 0}, 1.5)}), std::vector<std::string>{});
  EXPECT_EQ(unmet(all, {model("a", {1, 1, 0, 0}, 1.5), model("b", {1, 0, 0, 0}, 2)}),
            (std::vector<std::string>{"b: required is colours.acc>=0.5, and it is 0.25",
                                      "b: required is v1.prose.bits_per_byte<2, and it is 2"}));
}

TEST(EvalResults, as_a_document_have_differences_to_the_first_model) {
  const Node document =
      results_node(suite(), {model("a", {1, 1, 0, 0}, 1.5), model("b", {1, 1, 1, 0}, 1)}, {"b: something"});
  const Node& task = document.find("tasks")->items()[0];
  EXPECT_EQ(task.text_at("items"), "4");
  ASSERT_EQ(task.find("metrics")->items().size(), 3U);
  const Node& metric = task.find("metrics")->items()[0];
  EXPECT_EQ(metric.find("values")->items()[1].text_at("value"), "0.75");
  ASSERT_EQ(metric.find("differences")->items().size(), 1U);
  EXPECT_EQ(metric.find("differences")->items()[0].text_at("value"), "0.25");
  EXPECT_EQ(metric.find("differences")->items()[0].text_at("standard_error"), "0.25");
  const Node& single = document.find("tasks")->items()[1].find("metrics")->items()[0];
  EXPECT_TRUE(single.find("values")->items()[0].find("low")->is_null());
  EXPECT_EQ(document.find("unmet")->items()[0].text(), "b: something");
  EXPECT_EQ(document.find("metrics"), nullptr) << "of which model?";
  const Node alone = results_node(suite(), {model("a", {1, 1, 0, 0}, 1.5)}, {});
  EXPECT_EQ(alone.find("metrics")->text_at("colours.acc"), "0.5");
}

}  // namespace
}  // namespace systole

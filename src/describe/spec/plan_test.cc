#include "describe/spec/plan.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

Plan sample() {
  Plan plan;
  plan.workload = read_workload(
                      "systole: 1\nname: p\nmodel: { family: mlp, inputs: 3, outputs: 2 }\n"
                      "train: { batch: 4, steps: 10, optimizer: { kind: sgd, rate: 0.1 } }\n",
                      "p.yaml")
                      .value();
  plan.target = {"cpu(avx2, 2 threads)", {{"alignment", "64"}, {"isa", "avx2"}}, "cpu-avx2", "2026-11-01", "aa", false};
  plan.mesh = {{"data", 1}};
  plan.strategy = "one device";
  plan.program = {"7f3a", 4, 1, 8, 8, Flops(1'912'602'624), Flops(1'912'602'625), Bytes(5), Bytes(0)};
  plan.memory = {{{"state", Bytes(100)}, {"parameters", Bytes(50)}}, Bytes(150), Bytes(1000)};
  plan.time.step[Category::compute] = Seconds(0.1);
  plan.time.run[Category::startup] = Seconds(1.0 / 3.0);
  plan.time.compute_by_kind = {{"contractions", Seconds(0.07)}, {"attention", Seconds(0.03)}};
  plan.time.steps = 10;
  plan.model_utilisation = 0.81;
  plan.lost = {{"batch 8", "does not fit by 3 B", "resources.memory: 2GiB"}};
  plan.made_by = "0.1.0";
  plan.made_at = "2026-11-21T14:03:00.000Z";
  return plan;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  CHECK(at != text.npos, "no '{}'", from);
  return text.replace(at, from.size(), to);
}

TEST(Plan, reads_back_as_it_was_written) {
  const std::string text = to_json(sample());
  const Plan plan = read_plan(text, "plan.json").value();
  EXPECT_EQ(to_json(plan), text);
  EXPECT_EQ(plan.program.executed_flops, Flops(1'912'602'625));
  EXPECT_EQ(plan.memory.by_owner, sample().memory.by_owner);
  EXPECT_EQ(plan.time.compute_by_kind[1].first, "attention");
  EXPECT_EQ(plan.time.run[Category::startup], Seconds(1.0 / 3.0));
  EXPECT_EQ(plan.lost.at(0).edit, "resources.memory: 2GiB");
  EXPECT_EQ(plan.workload.train.optimizer.rate, 0.1);
}

TEST(Plan, of_rented_hardware_has_its_cost_and_the_search_is_passed_over) {
  Plan plan = sample();
  EXPECT_FALSE(read_plan(to_json(plan), "plan.json").value().cost.has_value());
  plan.cost = {"8 x m", "m:8", "on_demand", "z", "2026-07-30", DollarsPerHour(12.5), Dollars(100), true};
  const std::string text = to_json(plan);
  const Plan read = read_plan(replaced(text, "\"lost\"", "\"search\": {\"a\": [1]}, \"lost\""), "plan.json").value();
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.cost->dollars_per_hour, DollarsPerHour(12.5));
}

TEST(Plan, of_several_lengths_of_rows_has_each) {
  Plan plan = sample();
  EXPECT_TRUE(read_plan(to_json(plan), "plan.json").value().shapes.empty());
  plan.shapes = {{64, 16, 30, 900, Seconds(0.02), Flops(10), Flops(11), Bytes(12), Bytes(0)},
                 {256, 4, 10, 800, Seconds(0.03), Flops(20), Flops(21), Bytes(22), Bytes(0)}};
  const std::string text = to_json(plan);
  const Plan read = read_plan(text, "plan.json").value();
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.shapes.at(1).executed_flops, Flops(21));
  EXPECT_EQ(step_shares(read.shapes), (std::vector<double>{0.75, 0.25}));
  for (PlannedShape& shape : plan.shapes) shape.epoch_steps = 0;
  EXPECT_EQ(step_shares(plan.shapes), (std::vector<double>{0, 1})) << "the longest, where the data are not known";
}

TEST(Plan, a_plan_that_does_not_hold_is_refused) {
  const std::string text = to_json(sample());
  const struct {
    const char *from, *to;
    ErrorKind kind;
    const char* says;
  } cases[] = {
      {"\"systole_plan\": 1", "\"systole_plan\": 2", ErrorKind::unsupported, "version 2"},
      {"\"systole_plan\": 1", "\"plan\": 1", ErrorKind::corrupt, "no plan"},
      {"\"state\": 100", "\"state\": 101", ErrorKind::corrupt, "sum to 151"},
      {"\"hash\": \"7f3a\"", "\"hush\": \"7f3a\"", ErrorKind::corrupt, "'hash' is missing"},
      {"\"actions\": 4", "\"actions\": \"four\"", ErrorKind::corrupt, "expected"},
      {"\"strategy\"", "\"stratagem\"", ErrorKind::corrupt, "'strategy' is missing"},
      {"\"lost\"", "\"last\"", ErrorKind::corrupt, "last"},
      {"\"outputs\": 2", "\"outputs\": 0", ErrorKind::invalid, "model.outputs"},
  };
  for (const auto& c : cases) {
    const auto plan = read_plan(replaced(text, c.from, c.to), "plan.json");
    ASSERT_FALSE(plan.ok()) << c.to;
    EXPECT_EQ(plan.error().kind, c.kind) << to_string(plan.error());
    EXPECT_NE(plan.error().message.find(c.says), std::string::npos) << to_string(plan.error());
    EXPECT_EQ(plan.error().where.file, "plan.json");
  }
  for (std::size_t length = 0; length + 1 < text.size(); length += 7) {
    EXPECT_FALSE(read_plan(text.substr(0, length), "plan.json").ok());
  }
}

}  // namespace
}  // namespace systole

#include "predict/prove/compiler_comparison_text.h"
#include "predict/prove/compute_beside.h"

#include <gtest/gtest.h>

namespace systole::prove {
namespace {

JobOnSlice job() {
  JobOnSlice job;
  TimeByClass compute;
  compute[OpClass::contraction] = Seconds(0.003);
  compute[OpClass::elementwise] = Seconds(0.001);
  job.compute = compute;
  return job;
}

// At a million cycles per second.
Proof proof() {
  Proof proof;
  proof.whole = true;
  proof.executed.cycles = 5000;
  proof.compute = Seconds(0.005);
  proof.executed.by_op = {{"", 500}, {"add", 300}, {"contract", 4000}, {"repeat", 50}, {"rms_norm", 150}};
  return proof;
}

TEST(ProveCompute, predicted_stands_beside_what_is_scheduled_by_class) {
  const Proof whole = proof();
  EXPECT_EQ(compute_text(job(), &whole), R"(
compute of one run  predicted  scheduled  ratio
contraction           3.00 ms    4.00 ms   0.75
elementwise           1.00 ms     450 us   2.22
movement                  0 s    50.0 us   0.00
unnamed                     -     500 us      -
all                   4.00 ms    5.00 ms   0.80
predicted is 20.0% below what the compiler schedules
)");
  const Node node = compute_node(job(), &whole);
  EXPECT_DOUBLE_EQ(node.find("all")->find("ratio")->as_double().value(), 0.8);
  EXPECT_DOUBLE_EQ(node.find("contraction")->find("scheduled_s")->as_double().value(), 0.004);
  EXPECT_EQ(node.find("unnamed")->find("predicted_s"), nullptr);
}

TEST(ProveCompute, either_may_be_missing) {
  EXPECT_EQ(compute_text(job(), nullptr), R"(
compute of one run  predicted  scheduled  ratio
contraction           3.00 ms          -      -
elementwise           1.00 ms          -      -
all                   4.00 ms          -      -
)");
  JobOnSlice unknown = job();
  unknown.compute.reset();
  EXPECT_EQ(compute_text(unknown, nullptr), "");
  const Proof whole = proof();
  const std::string text = compute_text(unknown, &whole);
  EXPECT_NE(text.find("nothing is predicted: the catalog has no schedule.* of this chip"), std::string::npos) << text;
}

}  // namespace
}  // namespace systole::prove

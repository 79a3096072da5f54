// `systole plan --on` of a workload with data.buckets: the lengths of its built rows, by their share of the steps.

#include <gtest/gtest.h>

#include <cmath>

#include "ground/base/document.h"
#include "ground/base/text_file.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class PlanLengths : public testing::Test {
 protected:
  PlanLengths() {
    std::string text;
    for (int i = 0; i < 240; ++i) {
      text += fmt::format("alpha {}", i * 7919 % 1000);
      for (int more = 0; more < i * i % 29; ++more) text += fmt::format(" of beta{}", more % 13);
      text += "\n";
    }
    systole_.write("text.txt", text);
    systole_.write("job.yaml", R"(systole: 1
name: lengths
model: { family: llama, layers: 2, width: 32, heads: 2, kv_heads: 1, mlp: 64, context: 64 }
data: { train: { files: text.txt, document: line }, folder: data, tokenizer: { vocabulary: 300 }, buckets: [16, 32] }
train: { batch: 2, steps: 30, optimizer: { rate: 1e-2 }, precision: { compute: bf16, reduce: bf16 } }
)");
  }
  Captured run(const std::string& words) const { return systole_.shell("exec \"$SYSTOLE\" " + words); }
  Node json(const std::string& words) const {
    const Captured seen = run(words + " --json");
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    return parse_json(seen.out, "out").value();
  }
  static double number(const Node& of, const char* key) { return of.find(key)->as_double().value(); }
  SystoleRunner systole_;
};

TEST_F(PlanLengths, without_built_rows_it_says_how_to_build_them) {
  for (const char* more : {"", " --scale 8"}) {
    const Captured refused = run(std::string("plan job.yaml --on h100") + more);
    EXPECT_EQ(refused.exit.code, 2) << refused.err;
    EXPECT_TRUE(has(refused.err, "job.yaml:4:")) << refused.err;
    EXPECT_TRUE(has(refused.err, "which follows from data that are not built")) << refused.err;
    EXPECT_TRUE(has(refused.err, "hint: systole data build job.yaml builds the data")) << refused.err;
  }
  EXPECT_EQ(run("data build job.yaml").exit.code, 0);
  EXPECT_EQ(run("plan job.yaml --on h100:1 --best 1").exit.code, 0);
  const Captured none = run("plan job.yaml --on h100:1 --set data.drop_remainder=true --set train.batch=32");
  EXPECT_EQ(none.exit.code, 2);
  EXPECT_TRUE(has(none.err, "are no step of 128: all would be dropped")) << none.err;
}

// Everything is the mean over the lengths by their steps, which are those of the plan for this machine.
TEST_F(PlanLengths, steps_tokens_and_rows_are_means_over_an_epoch) {
  ASSERT_EQ(run("data build job.yaml").exit.code, 0);
  const Node here = json("plan job.yaml");
  const std::string on = "plan job.yaml --on a2-highgpu-1g:1,this";
  const Node plan = json(on);
  const Node& chosen = *plan.find("search")->find("chosen");
  const auto shapes = plan.find("shapes")->items(), own = here.find("shapes")->items();
  ASSERT_EQ(shapes.size(), 3u);
  ASSERT_EQ(own.size(), 3u);
  double steps = 0, seconds = 0, rows = 0, tokens = 0, flops = 0;
  for (std::size_t s = 0; s < 3; ++s) {
    for (const char* key : {"row_tokens", "rows", "epoch_steps", "epoch_tokens", "model_flops"})
      EXPECT_EQ(shapes[s].text_at(key), own[s].text_at(key)) << key;
    const double times = number(shapes[s], "epoch_steps");
    EXPECT_GT(times, 0);
    EXPECT_GT(number(shapes[s], "step_s"), 0);
    EXPECT_EQ(number(chosen.find("lengths")->items()[s], "step_seconds"), number(shapes[s], "step_s"));
    steps += times;
    seconds += times * number(shapes[s], "step_s");
    rows += times * number(shapes[s], "rows");
    tokens += number(shapes[s], "epoch_tokens");
    flops += times * number(shapes[s], "model_flops");
  }
  for (std::size_t s = 0; s < 3; ++s)
    EXPECT_NEAR(number(chosen.find("lengths")->items()[s], "share"), number(shapes[s], "epoch_steps") / steps, 1e-9);
  const double step = number(chosen, "step_seconds");
  EXPECT_NEAR(step, seconds / steps, 1e-9 * step);
  EXPECT_NEAR(number(*plan.find("program"), "model_flops"), flops / steps, 1);
  EXPECT_NEAR(number(*plan.find("feed"), "rows_per_second"), rows / seconds, 1e-6 * rows / seconds);
  EXPECT_NEAR(number(*plan.find("feed"), "row_bytes"), 2 * tokens / rows, 1e-6 * tokens / rows);
  EXPECT_GT(number(*plan.find("search")->find("this_machine"), "step_seconds"), 0);

  const Node counted = json(on + " --set train.steps=null --set train.tokens=100000");
  EXPECT_NEAR(number(*counted.find("search"), "steps"), 100000 / (tokens / steps), 1e-6 * 100000);

  const Captured shown = run(on);
  ASSERT_EQ(shown.exit.code, 0) << shown.err;
  EXPECT_TRUE(has(shown.out, " rows of 16, 32 or 64 tokens a step on average")) << shown.out;
  EXPECT_TRUE(has(shown.out, "rows of  rows a step  steps an epoch  share")) << shown.out;
  EXPECT_TRUE(has(shown.out, fmt::format("{:.4g} tokens/s", tokens / seconds))) << shown.out;
  EXPECT_TRUE(has(shown.out, "pipelines and the axis context were not looked at")) << shown.out;

  const Node scaled = json("plan job.yaml --on a2-highgpu-1g --scale 1");
  const Node& point = scaled.find("curves")->items()[0].find("points")->items()[0];
  EXPECT_NEAR(number(point, "tokens_per_second"), tokens / seconds, 1e-6 * tokens / seconds);
}

// Memory is that of the length that needs most: of these the longest, which rows padded to the context have too.
TEST_F(PlanLengths, memory_is_the_most_and_padded_rows_take_longer) {
  ASSERT_EQ(run("data build job.yaml").exit.code, 0);
  const std::string on = "plan job.yaml --on a2-highgpu-1g:1 --best 1";
  const Node lengths = json(on), padded = json(on + " --set data.buckets=null --set data.packing=false");
  const auto chosen = [](const Node& plan) { return *plan.find("search")->find("chosen"); };
  EXPECT_EQ(chosen(lengths).text_at("layout"), chosen(padded).text_at("layout"));
  EXPECT_EQ(chosen(lengths).text_at("memory_bytes"), chosen(padded).text_at("memory_bytes"));
  EXPECT_EQ(number(chosen(lengths).find("lengths")->items()[2], "step_seconds"),
            number(chosen(padded), "step_seconds"));
}

TEST_F(PlanLengths, what_it_writes_is_run_and_rendered) {
  ASSERT_EQ(run("data build job.yaml").exit.code, 0);
  ASSERT_EQ(run("plan job.yaml --on h100:2 --best 1 --out plan.json --set train.steps=4").exit.code, 0);
  const Captured trained = run("run --plan plan.json --ranks 2 --folder r");
  EXPECT_EQ(trained.exit.code, 0) << trained.err;
  EXPECT_TRUE(has(trained.out, "finished at step 4")) << trained.out << trained.err;
  const Captured rendered = run("render --plan plan.json --on slurm --out there");
  EXPECT_EQ(rendered.exit.code, 0) << rendered.out << rendered.err;
}

}  // namespace
}  // namespace systole::cli

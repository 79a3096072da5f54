// Training with rows of several lengths (data.buckets) through the command line: killed and resumed to the same bits,
// on ranks, what the plan says of it, and what is refused.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "ground/base/document.h"
#include "ground/base/text_file.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kExperts = " --set model.family=llama --set 'model.moe={experts: 4, capacity_factor: 0.5}'";
constexpr const char* kPipeline =
    " --set 'mesh={pipe: 2}' --set model.layers=2 --set train.microbatches=2 --set train.batch=4";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class LengthBuckets : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 240; ++i) {
      text += fmt::format("alpha {}", i * 7919 % 1000);
      for (int more = 0; more < i * i % 29; ++more) text += fmt::format(" of beta{}", more % 13);
      text += "\n";
    }
    systole_.write("text.txt", text);
    write_job("[16, 32]");
  }
  void write_job(const std::string& buckets) const {
    systole_.write("job.yaml", fmt::format(R"(systole: 1
name: lengths
model: {{ family: gpt, layers: 1, width: 16, heads: 2, context: 64, dropout: 0.1 }}
data: {{ train: {{ files: text.txt, document: line }}, held_out: {{ fraction: 10% }}, folder: data, tokenizer: {{ vocabulary: 300 }}, buckets: {} }}
train: {{ batch: 2, steps: 30, evaluate: {{ every: 10 }}, optimizer: {{ rate: 1e-2 }}, precision: f32 }}
checkpoint: {{ every: 4, keep: 10 }}
)",
                                           buckets));
  }
  Captured run(const std::string& words) const { return systole_.shell("exec \"$SYSTOLE\" " + words); }
  Node json(const std::string& words) const {
    const Captured seen = run(words + " --json");
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    return parse_json(seen.out, "out").value();
  }
  // The last event of this name.
  Node event(const std::string& run, const std::string& file, const std::string& name) const {
    std::istringstream lines(read_text_file((systole_.folder() / run / "events" / file).string()).value());
    Node last;
    for (std::string line; std::getline(lines, line);) {
      Node one = parse_json(line, "event").value();
      if (one.text_at("event") == name) last = std::move(one);
    }
    return last;
  }
  double last_loss(const std::string& run) const {
    return event(run, "000.jsonl", "step_ended").find("loss")->as_double().value();
  }
  // Exact training of the job with `sets`, killed twice on other ranks, and resumed on others.
  void expect_the_bits_of_one_rank(const std::string& sets) const {
    const std::string exact =
        sets + " --set train.exact=true --set train.logical_shards=4 --set train.batch=4 --set train.steps=20";
    const Captured whole = run("run job.yaml --folder whole" + exact);
    ASSERT_EQ(whole.exit.code, 0) << whole.err;
    const Captured killed =
        run("run job.yaml --folder killed" + exact + " --set 'mesh={data: 3}' --in-process --inject kill=update@7");
    EXPECT_EQ(killed.exit.signal, SIGKILL) << killed.err;
    const Captured again = run("resume killed --set 'mesh={fsdp: 2}' --in-process --inject kill=update@6");
    EXPECT_EQ(again.exit.signal, SIGKILL) << again.err;
    const Captured resumed = run("resume killed --set 'mesh={}'");
    ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
    const Captured diff = run("ckpt diff whole@20 killed@20");
    EXPECT_EQ(diff.exit.code, 0) << diff.out << diff.err;
    // Each row of a step is in one of its shards.
    const std::string plain = " --set train.exact=false --set train.logical_shards=null";
    ASSERT_EQ(run("run job.yaml --folder plain" + exact + plain).exit.code, 0);
    EXPECT_NEAR(last_loss("whole"), last_loss("plain"), 1e-3);
  }
  SystoleRunner systole_;
};

TEST_F(LengthBuckets, killed_and_resumed_it_ends_with_the_same_bits) {
  const Captured whole = run("run job.yaml --folder whole");
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  EXPECT_EQ(run("run job.yaml --folder killed --inject kill=compute@13").exit.signal, SIGKILL);
  EXPECT_EQ(run("resume killed --inject kill=update@22").exit.signal, SIGKILL);
  const Captured resumed = run("resume killed");
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  const Captured diff = run("ckpt diff whole@30 killed@30");
  EXPECT_EQ(diff.exit.code, 0) << diff.out << diff.err;
}

TEST_F(LengthBuckets, exact_and_killed_on_other_ranks_it_ends_with_the_same_bits) { expect_the_bits_of_one_rank(""); }

// The work of the steps of each length is what the plan says, as integers.
TEST_F(LengthBuckets, every_length_does_what_the_plan_says) {
  const std::pair<std::string, std::string> cases[] = {
      {"one", ""},
      {"fsdp", " --ranks 2 --set 'mesh={fsdp: 2}'"},
      {"exact", " --ranks 2 --set 'mesh={data: 2}' --set train.exact=true --set train.logical_shards=2"},
      {"expert", std::string(kExperts) + " --ranks 2 --set 'mesh={expert: 2}'"},
      {"pipe", std::string(kPipeline) + " --ranks 2"}};
  for (const auto& [folder, words] : cases) {
    SCOPED_TRACE(folder);
    const Captured done = run("run job.yaml --folder " + folder + words);
    ASSERT_EQ(done.exit.code, 0) << done.err;
    const Node plan =
        parse_json(read_text_file((systole_.folder() / folder / "plan.json").string()).value(), "plan").value();
    ASSERT_EQ(plan.find("shapes")->items().size(), 3u);
    const Node counted = event(folder, "000.jsonl", "work_counted");
    std::int64_t flops = 0, moved = 0, sent = 0, steps = 0;
    for (const Node& shape : plan.find("shapes")->items()) {
      const std::int64_t times =
          counted.find("steps_by_row_tokens")->find(shape.text_at("row_tokens"))->as_int(0).value();
      EXPECT_GT(times, 0) << shape.text_at("row_tokens");
      steps += times;
      flops += times * shape.find("executed_flops")->as_int(0).value();
      moved += times * shape.find("bytes_moved")->as_int(0).value();
      sent += times * shape.find("bytes_sent")->as_int(0).value();
    }
    EXPECT_EQ(steps, 30);
    EXPECT_EQ(counted.find("flops")->as_int(0).value(), flops);
    EXPECT_EQ(counted.find("bytes_moved")->as_int(0).value(), moved);
    EXPECT_EQ(counted.find("bytes_sent")->as_int(0).value(), sent);
    EXPECT_EQ(sent > 0, !words.empty());
    const Node memory = event(folder, "000.jsonl", "memory_measured");
    EXPECT_EQ(memory.text_at("arena_high_water_bytes"), plan.find("memory")->text_at("arena_bytes"));
    const Node why = json("why " + folder);
    EXPECT_EQ(why.text_at("planned_flops"), why.text_at("counted_flops"));
  }
}

TEST_F(LengthBuckets, the_plan_says_the_steps_of_each_length) {
  const Captured shown = run("plan job.yaml");
  ASSERT_EQ(shown.exit.code, 0) << shown.err;
  EXPECT_TRUE(has(shown.out, "rows of  rows a step  steps an epoch")) << shown.out;
  EXPECT_TRUE(has(shown.out, "3 shapes compiled, one arena; an epoch is ")) << shown.out;
  EXPECT_TRUE(has(shown.out, " tokens a second, padding not counted")) << shown.out;

  const Node plan = json("plan job.yaml --set train.steps=null --set train.tokens=100000");
  double steps = 0, tokens = 0, seconds = 0, of_step = 0;
  std::map<std::string, std::string> rows;
  for (const Node& shape : plan.find("shapes")->items()) {
    const double times = shape.find("epoch_steps")->as_double().value();
    steps += times;
    tokens += shape.find("epoch_tokens")->as_double().value();
    seconds += times * shape.find("step_s")->as_double().value();
    rows[shape.text_at("row_tokens")] = shape.text_at("rows");
  }
  EXPECT_EQ(rows, (std::map<std::string, std::string>{{"16", "8"}, {"32", "4"}, {"64", "2"}}));
  for (const auto& category : plan.find("time")->find("step_s")->entries())
    of_step += category.value.as_double().value();
  EXPECT_NEAR(of_step, seconds / steps, 1e-6 * of_step) << "the mean step";
  EXPECT_NEAR(plan.find("time")->find("steps")->as_double().value(), 100000 / (tokens / steps), 1e-6 * 100000);

  // One arena: that of the rows of 64 alone.
  const Node padded = json("plan job.yaml --set data.buckets=null --set data.packing=false");
  const auto arena = [](const Node& of) { return of.find("memory")->find("arena_bytes")->as_double().value(); };
  EXPECT_NEAR(arena(plan) / arena(padded), 1, 0.02);
}

TEST_F(LengthBuckets, a_pipeline_killed_and_resumed_ends_with_the_same_bits) {
  const std::string staged = std::string(kPipeline) + " --in-process";
  const Captured whole = run("run job.yaml --folder whole" + staged);
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  EXPECT_EQ(run("run job.yaml --folder killed" + staged + " --inject kill=update@13").exit.signal, SIGKILL);
  const Captured resumed = run("resume killed --in-process");
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  const Captured diff = run("ckpt diff whole@30 killed@30");
  EXPECT_EQ(diff.exit.code, 0) << diff.out << diff.err;
  ASSERT_EQ(run("run job.yaml --folder one" + std::string(kPipeline) + " --set 'mesh={}'").exit.code, 0);
  EXPECT_NEAR(last_loss("whole"), last_loss("one"), 1e-3);
}

TEST_F(LengthBuckets, automatic_lengths_follow_from_the_data) {
  write_job("auto");
  const Captured done = run("run job.yaml --folder automatic --set train.steps=6");
  ASSERT_EQ(done.exit.code, 0) << done.err;
  const Node plan = json("plan job.yaml");
  EXPECT_GT(plan.find("shapes")->items().size(), 1u);
  EXPECT_LE(plan.find("shapes")->items().size(), 8u);
  EXPECT_EQ(run("run job.yaml --folder killed --set train.steps=6 --inject kill=update@5").exit.signal, SIGKILL);
  const Captured resumed = run("resume killed");
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_EQ(run("ckpt diff automatic@6 killed@6").exit.code, 0);
}

// A little: of this text more than 10% is padding in rows of 16, 32 and 64.
TEST_F(LengthBuckets, check_warns_of_padding_once_the_data_are_built) {
  const std::string words = "check job.yaml --set resources.accelerators=h100:8";
  const Captured before = run(words);
  EXPECT_EQ(before.exit.code, 0) << before.err;
  EXPECT_FALSE(has(before.out + before.err, "padded_rows")) << before.out << before.err;
  ASSERT_EQ(run("data build job.yaml").exit.code, 0);
  const Captured built = run(words);
  EXPECT_EQ(built.exit.code, 0) << built.err;
  EXPECT_TRUE(has(built.out + built.err, "one text in each row, of these lengths: ")) << built.out << built.err;
}

TEST_F(LengthBuckets, a_length_that_fills_no_step_is_refused_by_the_plan) {
  for (const char* command : {"plan", "run"}) {
    const Captured refused =
        run(std::string(command) + " job.yaml --set data.drop_remainder=true --set train.batch=32");
    EXPECT_EQ(refused.exit.code, 2) << command << refused.err;
    EXPECT_TRUE(has(refused.err, "are no step of 128: all would be dropped")) << refused.err;
  }
}

TEST_F(LengthBuckets, a_mixture_killed_on_other_ranks_ends_with_the_same_bits) {
  expect_the_bits_of_one_rank(kExperts);
}

// Groups of tokens within which a mixture's experts have their capacity.
TEST_F(LengthBuckets, groups_that_a_length_cuts_are_refused_with_lengths_that_fit) {
  write_job("[8, 24, 40]");
  const std::string words = "plan job.yaml --set model.family=llama --set 'model.moe={experts: 4, group: 16}'";
  const Captured refused = run(words);
  EXPECT_EQ(refused.exit.code, 2) << refused.err;
  EXPECT_TRUE(has(refused.err, "groups of 16 tokens (model.moe.group) do not divide rows of 24")) << refused.err;
  EXPECT_TRUE(has(refused.err, "hint: data.buckets: [8, 32, 48, 64], or ")) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "data")) << "refused before the data are built";
  const Captured fits = run(words + " --set 'data.buckets=[8, 32, 48, 64]'");
  EXPECT_EQ(fits.exit.code, 0) << fits.err;
}

TEST_F(LengthBuckets, what_has_one_length_is_refused_by_name) {
  const std::pair<const char*, const char*> cases[] = {
      {"plan job.yaml --set 'probe.values=[block*]'", "a step with probes has rows of one length"},
      {"plan job.yaml --set 'mesh={context: 2}'", "a mesh with the axis context"},
      {"plan job.yaml --on h100", "which follows from data that are not built"}};
  for (const char* buckets : {"[16, 32]", "auto"}) {
    write_job(buckets);
    for (const auto& [words, reason] : cases) {
      const Captured refused = run(words);
      EXPECT_NE(refused.exit.code, 0) << words;
      EXPECT_TRUE(has(refused.err, reason)) << words << "\n" << refused.err;
      EXPECT_TRUE(has(refused.err, "data.buckets")) << refused.err;
      EXPECT_TRUE(has(refused.err, "hint:")) << refused.err;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "data")) << "refused before the data are built";
}

}  // namespace
}  // namespace systole::cli

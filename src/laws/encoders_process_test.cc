// A bert and a t5 as whole runs: counted work equals planned work; a killed run ends with the same bits as an
// undisturbed one (so masks depend only on their position, and pairs come in the same order); the t5 answers, and the
// bert refuses.

#include <gtest/gtest.h>

#include <bit>
#include <csignal>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

std::string job_of(const char* model, const char* files) {
  return fmt::format(
      "systole: 1\nname: tiny\nmodel: {{ {}, layers: 2, width: 32, heads: 2, context: 32, dropout: 0.1 }}\n"
      "data: {{ train: {{ files: {} }}, tokenizer: {{ vocabulary: 300 }}, folder: data, seed: 3 }}\n"
      "train:\n  exact: true\n  batch: 6\n  microbatches: 2\n  steps: 12\n  optimizer: {{ rate: 3e-3 }}\n"
      "  precision: bf16\n  evaluate: {{ every: 6 }}\ncheckpoint: {{ every: 4, keep: 2 }}\nresources: {{ threads: 2 "
      "}}\n",
      model, files);
}

struct Encoder {
  const char *name, *model, *files;
};
constexpr Encoder kEncoders[] = {
    {"bert", "family: bert", "text.txt"},
    {"t5", "family: t5, target_context: 12", "pairs.jsonl"},
    {"t5 v1.1", "family: t5, target_context: 12, gated: true, tied: false", "pairs.jsonl"}};

void write_job(const Workshop& shop, const Encoder& encoder) {
  std::string pairs;
  for (int i = 0; i < 400; ++i)
    pairs += fmt::format("{{\"input\": \"the number {} and {} more\", \"target\": \"{}\"}}\n", i, i % 7, i + i % 7);
  shop.write("pairs.jsonl", pairs);
  shop.write("job.yaml", job_of(encoder.model, encoder.files));
}

std::vector<std::string> losses_of(const Workshop& shop, const std::string& run) {
  std::vector<std::string> losses;
  for (const StepEnded& s : canonical_steps(shop.events(run)))
    losses.push_back(
        fmt::format("step {} loss {:016x} labels {}", s.step, std::bit_cast<std::uint64_t>(s.loss), s.labels));
  return losses;
}

TEST(Encoders, what_was_planned_is_what_was_counted) {
  for (const Encoder& encoder : kEncoders) {
    SCOPED_TRACE(encoder.name);
    const Workshop shop;
    write_job(shop, encoder);
    const Captured done = shop.systole({"run", "job.yaml", "--folder", "run"});
    ASSERT_EQ(done.exit.code, 0) << done.err;
    EXPECT_EQ(shop.unplanned_work("run", 12), "");
    const Evaluated evaluated = last_of<Evaluated>(shop.events("run"));
    EXPECT_GT(evaluated.labels, 0);
    EXPECT_FALSE(evaluated.bits_per_byte) << "of tokens that are a part of the text";
  }
}

TEST(Encoders, a_killed_run_goes_on_to_the_same_bits) {
  for (const Encoder& encoder : kEncoders) {
    SCOPED_TRACE(encoder.name);
    const Workshop shop;
    write_job(shop, encoder);
    ASSERT_EQ(shop.systole({"run", "job.yaml", "--folder", "whole"}).exit.code, 0);
    const Captured killed = shop.systole({"run", "job.yaml", "--folder", "killed", "--inject", "kill=update@9"});
    ASSERT_EQ(killed.exit.signal, SIGKILL) << killed.err;
    const std::int64_t saved = shop.newest_saved("killed");
    EXPECT_GE(saved, 4) << "that of step 8 waits for it";
    const Captured resumed = shop.systole({"resume", "killed"});
    ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
    EXPECT_EQ(shop.not_resumed("killed", saved), "");
    EXPECT_EQ(shop.state_hash("killed", 12), shop.state_hash("whole", 12));
    EXPECT_EQ(losses_of(shop, "killed"), losses_of(shop, "whole"));
    EXPECT_EQ(losses_of(shop, "whole").size(), 12U);
  }
}

TEST(Encoders, a_t5_answers_and_a_bert_says_that_it_cannot) {
  const Workshop t5, bert;
  write_job(t5, kEncoders[1]);
  write_job(bert, kEncoders[0]);
  for (const Workshop* shop : {&t5, &bert})
    ASSERT_EQ(shop->systole({"run", "job.yaml", "--folder", "run"}).exit.code, 0);
  const std::vector<std::string> ask{"generate",      "run", "--prompt", "the number 3",
                                     "--temperature", "0",   "--tokens", "5"};
  const Captured answer = t5.systole(ask), again = t5.systole(ask), none = bert.systole(ask);
  EXPECT_EQ(answer.exit.code, 0) << answer.err;
  EXPECT_EQ(answer.out, again.out);
  EXPECT_EQ(answer.out.find("the number 3"), std::string::npos) << "the prompt is no part of an answer: " << answer.out;
  EXPECT_NE(none.exit.code, 0);
  EXPECT_NE(none.err.find("a model of family 'bert' does not generate text"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace systole::laws

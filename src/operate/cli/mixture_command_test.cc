// Mixtures of sources through the command line: built, shown, planned, trained on, and resumed or refused.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string lines(const std::string& word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += word + " " + std::to_string(i * 7919 % 1000) + " of " + word + std::to_string(i % 13) + "\n";
  return text;
}

class MixtureCommand : public testing::Test {
 protected:
  void SetUp() override {
    systole_.write("wiki.txt", lines("alpha", 300));
    systole_.write("code.jsonl", [] {
      std::string text;
      for (int i = 0; i < 100; ++i) text += "{\"body\": \"return " + std::to_string(i * 31 % 997) + " + x;\"}\n";
      return text;
    }());
    job("wiki: { files: wiki.txt, weight: 3 }, code: { files: code.jsonl, field: body, weight: 1 }");
  }
  void job(const std::string& sources, const std::string& more = "", const std::string& ends = "steps: 16") const {
    systole_.write("job.yaml",
                   "systole: 1\nname: mixed\n"
                   "model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }\n"
                   "train: { batch: 4, " +
                       ends +
                       ", optimizer: { kind: sgd, rate: 1e-2 } }\n"
                       "checkpoint: { every: 4 }\n"
                       "data: { folder: data, tokenizer: { vocabulary: 300 }, mixture: { sources: { " +
                       sources + " }" + more + " } }\n");
  }
  Captured systole(std::vector<std::string> words) const { return systole_.run(words); }
  Captured done(std::vector<std::string> words) const {
    Captured got = systole_.run(words);
    EXPECT_EQ(got.exit.code, 0) << got.out << got.err;
    return got;
  }
  SystoleRunner systole_;
};

TEST_F(MixtureCommand, is_built_shown_and_planned) {
  const Captured early = systole({"data", "show", "job.yaml"});
  EXPECT_NE(early.exit.code, 0);
  EXPECT_TRUE(has(early.err, "hint: systole data build job.yaml")) << early.err;
  done({"data", "build", "job.yaml"});
  const Captured shown = done({"data", "show", "job.yaml"});
  EXPECT_TRUE(has(shown.out, "source wiki: dataset ")) << shown.out;
  EXPECT_TRUE(has(shown.out, "mixture by tokens, over 16 steps of 4 rows\n")) << shown.out;
  EXPECT_TRUE(has(shown.out, "75.00%")) << shown.out;
  const Node json = parse_json(done({"data", "show", "job.yaml", "--json"}).out, "json").value();
  const Node* sources = json.find("datasets")->items()[0].find("mixture")->find("sources");
  ASSERT_NE(sources, nullptr);
  double drawn = 0, rows = 0;
  for (const Node& source : sources->items()) {
    drawn += source.find("drawn_share")->as_double().value();
    rows += source.find("epochs")->as_double().value() * source.find("rows")->as_double().value();
    EXPECT_GT(source.find("held_out_documents")->as_int().value(), 0);
  }
  EXPECT_NEAR(drawn, 1, 1e-9);
  EXPECT_NEAR(rows, 64, 1e-6) << "all rows of 16 steps";
  const Captured shared = done({"data", "show", "job.yaml", "--contamination", "2"});
  EXPECT_TRUE(has(shared.out, "in runs of 2 words\n") && has(shared.out, "with one")) << shared.out;
  const Captured planned = done({"plan", "job.yaml", "--backend", "reference"});
  EXPECT_TRUE(has(planned.out, "mixture by tokens, over 16 steps of 4 rows\n")) << planned.out;
  EXPECT_TRUE(has(planned.out, "what the reader gives is not measured: a mixture is read source by source\n"))
      << planned.out;
  EXPECT_TRUE(has(done({"data", "build", "job.yaml"}).err, "all of it was there already"));
  EXPECT_TRUE(has(done({"data", "verify", "job.yaml"}).out, ": OK, "));
  const Captured lengths = systole({"data", "lengths", "job.yaml"});
  EXPECT_EQ(lengths.exit.code, 3) << lengths.out;
  EXPECT_TRUE(has(lengths.err, "the files of one source as data.train")) << lengths.err;
}

TEST_F(MixtureCommand, text_of_a_suite_that_stands_in_a_source_is_found) {
  done({"data", "build", "job.yaml"});
  systole_.write("suite.jsonl",
                 "{\"q\": \"nobody has written this\"}\n{\"q\": \"so: return 31 + X; and return 62 + x\"}\n"
                 "{\"q\": \"short\"}\n");
  const std::vector<std::string> asked = {
      "data", "show", "job.yaml", "--contamination", "3", "--against", "suite.jsonl", "--against-field", "q"};
  const Captured shown = done(asked);
  EXPECT_TRUE(has(shown.out,
                  "held-out text, and text of these files, that stands in the training text too, in runs of "
                  "3 words\n"))
      << shown.out;
  EXPECT_TRUE(has(shown.out, "suite.jsonl: 1 document of fewer words, not compared\n")) << shown.out;
  std::vector<std::string> as_json = asked;
  as_json.push_back("--json");
  const Node all = parse_json(done(as_json).out, "out").value();
  const Node& found = *all.find("datasets")->items()[0].find("contamination");
  EXPECT_EQ(found.find("held_out")->items().size(), 2U);
  const Node& suite = found.find("against")->items()[0];
  EXPECT_EQ(suite.find("touched")->as_int().value(), 1);
  const auto& with = suite.find("with")->items();
  EXPECT_EQ(with[0].find("source")->as_string().value(), "wiki");
  EXPECT_EQ(with[0].find("touched")->as_int().value(), 0);
  EXPECT_EQ(with[1].find("touched")->as_int().value(), 1);
  const Node& worst = suite.find("worst")->items()[0];
  EXPECT_EQ(worst.find("line")->as_int().value(), 2);
  EXPECT_EQ(worst.find("most_in")->find("source")->as_string().value(), "code");
  EXPECT_TRUE(has(worst.find("most_in")->find("file")->as_string().value(), "/code.jsonl"));

  const Captured none = systole({"data", "show", "job.yaml", "--against", "suit.jsonl"});
  EXPECT_EQ(none.exit.code, 2) << none.out;
  EXPECT_TRUE(has(none.err, "suit.jsonl")) << none.err;
  const Captured field = systole({"data", "show", "job.yaml", "--against", "suite.jsonl"});
  EXPECT_EQ(field.exit.code, 2) << field.out;
  EXPECT_TRUE(has(field.err, "suite.jsonl:1") && has(field.err, "--against-field")) << field.err;
}

TEST_F(MixtureCommand, a_run_draws_by_its_schedule) {
  const std::string sources = "wiki: { files: wiki.txt }, code: { files: code.jsonl, field: body }";
  const auto tokens_seen = [&](const std::string& schedule, const std::string& folder) {
    job(sources, ", schedule: [ " + schedule + " ]");
    const Captured got = done({"run", "job.yaml", "--backend", "reference", "--folder", folder});
    const std::string told = got.out + got.err;
    EXPECT_TRUE(has(told, "held-out loss ") && has(told, " (wiki ") && has(told, ", code ")) << told;
    const std::size_t at = told.find("finished at step 16, ");
    EXPECT_NE(at, told.npos) << told;
    return at == told.npos ? told : told.substr(at, told.find(" tokens seen", at) - at);
  };
  const std::string wiki = tokens_seen("{ from: 0, wiki: 1, code: 0 }, { from: 15, wiki: 0, code: 1 }", "a"),
                    code = tokens_seen("{ from: 0, wiki: 0, code: 1 }, { from: 15, wiki: 1, code: 0 }", "b");
  EXPECT_NE(wiki, code);
}

TEST_F(MixtureCommand, another_mixture_is_not_the_one_that_a_run_began_with) {
  done({"run", "job.yaml", "--backend", "reference", "--folder", "r", "--set", "train.steps=8"});
  const auto go_on = [&](const std::string& sources, const std::string& what) {
    const Captured got = systole({"resume", "r", "--backend", "reference", "--set", "train.steps=16", "--set",
                                  "data.mixture.sources={" + sources + "}"});
    EXPECT_EQ(got.exit.code, 2) << got.out << got.err;
    EXPECT_TRUE(has(got.err, what)) << got.err;
    EXPECT_TRUE(has(got.err, "or begin a new run: systole run r/workload.yaml")) << got.err;
  };
  const std::string wiki = "wiki: { files: wiki.txt, weight: 3 }",
                    code = "code: { files: code.jsonl, field: body, weight: 1 }";
  go_on("wiki: { files: wiki.txt, weight: 4 }, " + code, "the source 'wiki' is now text ");
  go_on(wiki + ", more: { files: wiki.txt, weight: 1 }, " + code, "the source 'more' is new");
  go_on(wiki, "the source 'code' is gone");
  systole_.write("code.jsonl", "{\"body\": \"other\"}\n");
  go_on(wiki + ", " + code, "the source 'code' is now text ");
}

TEST_F(MixtureCommand, of_many_tiny_files_is_warned_of) {
  std::filesystem::create_directory(systole_.folder() / "tiny");
  for (int i = 0; i < 1000; ++i) systole_.write(fmt::format("tiny/{}.txt", i), "a");
  job("tiny: { files: tiny/*.txt }, wiki: { files: wiki.txt }");
  const Captured checked = done({"check", "job.yaml"});
  EXPECT_TRUE(has(checked.out + checked.err, "data.mixture.sources: 1,001 files of ")) << checked.out << checked.err;
}

TEST_F(MixtureCommand, of_less_than_a_step_is_shown_over_one) {
  job("wiki: { files: wiki.txt, weight: 3 }, code: { files: code.jsonl, field: body, weight: 1 }", "", "tokens: 1");
  const Captured planned = done({"plan", "job.yaml", "--backend", "reference"});
  EXPECT_TRUE(has(planned.out, "mixture by tokens, over 1 step of 4 rows\n")) << planned.out;
  EXPECT_FALSE(has(planned.out, "nan")) << planned.out;
}

TEST_F(MixtureCommand, a_run_of_more_steps_than_it_has_rows_is_refused_with_those_it_has) {
  constexpr const char* kOnce =
      "wiki: { files: wiki.txt, weight: 3 }, code: { files: code.jsonl, field: body, weight: 1, epochs: 1 }";
  job(kOnce, ", exhausted: stop");
  const Captured refused = systole({"plan", "job.yaml", "--backend", "reference", "--set", "train.steps=1000"});
  EXPECT_EQ(refused.exit.code, 2) << refused.out;
  EXPECT_TRUE(has(refused.err, "the rows of the mixture end at step ") &&
              has(refused.err, " of 1,000: the source 'code' has given its 1 epoch"))
      << refused.err;
  const std::string hint = "hint: train.steps: ";
  const std::size_t at = refused.err.find(hint);
  ASSERT_NE(at, std::string::npos) << refused.err;
  const std::string steps = refused.err.substr(at + hint.size(), refused.err.find(',', at) - at - hint.size());
  done({"run", "job.yaml", "--backend", "reference", "--folder", "r", "--set", "train.steps=" + steps});
  done({"plan", "job.yaml", "--backend", "reference", "--set", "train.steps=1000", "--set",
        "data.mixture.exhausted=rescale"});
  for (const auto& [command, ends] : {std::pair("plan", "tokens: 100"), {"run", "time: 1s"}}) {
    job(kOnce, ", exhausted: stop", ends);
    const Captured open = systole({command, "job.yaml", "--backend", "reference"});
    EXPECT_EQ(open.exit.code, 2) << open.out;
    EXPECT_TRUE(has(open.err, "the rows of the mixture end at step ") && has(open.err, "hint: train.steps: " + steps))
        << open.err;
  }
}

TEST_F(MixtureCommand, what_is_wrong_with_a_source_names_it) {
  const auto refused = [&](const std::string& message) {
    const Captured got = systole({"data", "build", "job.yaml"});
    EXPECT_EQ(got.exit.code, 2) << got.out << got.err;
    EXPECT_TRUE(has(got.err, message)) << got.err;
    EXPECT_TRUE(has(got.err, "job.yaml:6:")) << got.err;
  };
  job("wiki: { files: wiki.txt }, code: { files: absent.txt }, more: { files: gone.txt }");
  refused("data.mixture.sources.code.files: no file '");
  refused("data.mixture.sources.more.files: no file '");
  job("wiki: { files: wiki.txt }, code: { files: empty.txt }");
  systole_.write("empty.txt", "\n");
  refused("the source 'code' has no document to train on");
  job("wiki: { files: wiki.txt, weight: 0 }, code: { files: code.jsonl }");
  refused("wiki.weight: 0 is no weight");
}

}  // namespace
}  // namespace systole::cli

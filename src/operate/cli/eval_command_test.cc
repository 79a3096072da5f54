// `systole eval` as its users meet it: log likelihoods and answers of a golden model beside those of transformers, gates,
// comparisons, files, and wrong suites.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <sstream>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "ground/net/testing/http_stub.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kSuite = R"(suite: 1
tasks:
  - name: next
    kind: multiple_choice
    data:
      - { begins: "All human beings, все люди", options: ['"', "!", "?"], right: 0 }
      - { begins: "All human beings, все лю", options: ["ди", "ди"], right: "ди" }
    context: "{begins}"
    choices: "{options}"
    target: "{right}"
    delimiter: ""
  - { name: answer, kind: exact_match, data: prompts.jsonl, context: "{prompt}", target: "{answer}", tokens: 1 }
  - { name: taken, kind: regex, data: prompts.jsonl, context: "{prompt}", target: "x{answer}", pattern: "(z)|j", tokens: 1 }
  - { name: prose, kind: bits_per_byte, file: prose.txt }
)";

class EvalCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/gpt2", systole_.folder() / "model");
    systole_.write("suite.yaml", kSuite);
    systole_.write("prompts.jsonl", "{\"prompt\": \"All human beings, все люди\", \"answer\": \"j\"}\n");
    std::string prose;
    for (int i = 0; i < 30; ++i) prose += "All human beings are born free. ";
    systole_.write("prose.txt", prose);
  }
  Captured eval(std::vector<std::string> more, const std::string& suite = "suite.yaml") const {
    std::vector<std::string> words{"eval", suite, "--model", "model", "--backend", "reference"};
    words.insert(words.end(), more.begin(), more.end());
    return systole_.run(words);
  }
  Node results(std::vector<std::string> more) const {
    more.push_back("--json");
    const Captured said = eval(std::move(more));
    EXPECT_EQ(said.exit.code, 0) << said.err;
    return parse_json(said.out, "out").value();
  }
  std::vector<Node> samples_in(const std::string& file) const {
    std::vector<Node> lines;
    std::istringstream text(text_of(systole_.folder() / file));
    for (std::string line; std::getline(text, line);) lines.push_back(parse_json(line, file).value());
    return lines;
  }
  // What a suite with this task is refused with.
  std::string refused(const std::string& task, int exit = 2) const {
    systole_.write("wrong.yaml", "suite: 1\ntasks:\n  - " + task + "\n");
    const Captured said = eval({}, "wrong.yaml");
    EXPECT_EQ(said.exit.code, exit) << said.out << said.err;
    return said.err;
  }

  SystoleRunner systole_;
};

double number_at(const Node& node, const std::string& key) { return node.find(key)->as_double().value(); }

// Values of transformers 5.23.0 (execute/weights/golden/gpt2/expected.json): the log softmax of its logits.
TEST_F(EvalCommand, log_likelihoods_and_answers_are_those_of_transformers) {
  std::vector<std::string> backends{"reference"};
#ifdef SYSTOLE_HAS_CPU
  backends.push_back("cpu");
#endif
  for (const std::string& backend : backends) {
    const Captured said = systole_.run({"eval", "suite.yaml", "--model", "model", "--backend", backend, "--samples",
                                        "samples.jsonl", "--out", "results.json"});
    ASSERT_EQ(said.exit.code, 0) << said.err;
    const std::vector<Node> samples = samples_in("samples.jsonl");
    ASSERT_EQ(samples.size(), 5U);
    const double expected[][3] = {{-3.2320665, -5.0298134, -4.8816980}, {-23.9629688, -23.9629688, 0}};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::span<const Node> values = samples[i].find("log_likelihoods")->items();
      for (std::size_t c = 0; c < values.size(); ++c)
        EXPECT_NEAR(values[c].as_double().value(), expected[i][c], 1e-4) << backend << " " << i << " " << c;
      EXPECT_EQ(number_at(samples[i], "acc"), 1);
    }
    EXPECT_EQ(samples[2].find("answer")->text(), "j");
    EXPECT_EQ(number_at(samples[2], "exact_match"), 1);
    EXPECT_EQ(samples[3].find("taken")->text(), "");
    EXPECT_EQ(number_at(samples[3], "exact_match"), 0);
    EXPECT_EQ(samples[4].find("words")->text(), "181") << "180, and nothing behind the last space";
    const Node results = parse_json(text_of(systole_.folder() / "results.json"), "results.json").value();
    EXPECT_EQ(results.find("tasks")->items().size(), 4U);
  }
}

TEST_F(EvalCommand, a_model_beside_itself_differs_by_nothing) {
  const Node document = results({"--model", "model", "--limit", "1"});
  ASSERT_EQ(document.find("models")->items().size(), 2U);
  for (const Node& task : document.find("tasks")->items()) {
    EXPECT_EQ(task.find("items")->text(), "1");
    for (const Node& metric : task.find("metrics")->items()) {
      const std::span<const Node> values = metric.find("values")->items();
      ASSERT_EQ(values.size(), 2U);
      EXPECT_EQ(values[0], values[1]);
      EXPECT_TRUE(values[0].find("standard_error")->is_null()) << "of a single item";
      EXPECT_EQ(number_at(metric.find("differences")->items()[0], "value"), 0);
    }
  }
  const Captured table = eval({"--model", "model"});
  EXPECT_EQ(table.exit.code, 0) << table.err;
  EXPECT_NE(table.out.find("word_perplexity"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("+0.0000"), std::string::npos) << table.out;
}

TEST_F(EvalCommand, several_suites_and_models_are_a_matrix) {
  const std::string head = "suite: 1\ntasks:\n  - { name: next, kind: multiple_choice, data: next.jsonl, context: ";
  const std::string tail = ", choices: [a, b], target: a, delimiter: \"\" }\n";
  systole_.write("terse.yaml", head + "\"{c}\"" + tail);
  systole_.write("polite.yaml", head + "\"Please: {c}\"" + tail);
  systole_.write("next.jsonl", "{\"c\": \"x\"}\n{\"c\": \"All human\"}\n{\"c\": \"born\"}\n");
  const Captured said =
      systole_.run({"eval", "terse.yaml", "polite.yaml", "--model", "model", "--model", "model", "--backend",
                    "reference", "--require", "polite/next.acc>=0", "--samples", "samples.jsonl", "--json"});
  ASSERT_EQ(said.exit.code, 0) << said.err;
  const Node document = parse_json(said.out, "out").value();
  ASSERT_EQ(document.find("tasks")->items().size(), 2U);
  EXPECT_EQ(document.find("tasks")->items()[0].text_at("task"), "terse/next");
  EXPECT_EQ(document.find("tasks")->items()[1].text_at("task"), "polite/next");
  for (const Node& task : document.find("tasks")->items()) {
    const Node& metric = task.find("metrics")->items()[0];
    ASSERT_EQ(metric.find("values")->items().size(), 2U);
    ASSERT_EQ(metric.find("differences")->items().size(), 1U);
    EXPECT_EQ(number_at(metric.find("differences")->items()[0], "standard_error"), 0) << "paired: the same model";
  }
  EXPECT_EQ(samples_in("samples.jsonl").size(), 12U) << "2 suites, 2 models, 3 items";
}

TEST_F(EvalCommand, an_archive_keeps_results_and_tells_what_was_changed) {
  systole_.write("prose.yaml", "suite: 1\ntasks:\n  - { name: prose, kind: bits_per_byte, file: prose.txt }\n");
  const auto verify = [&] { return systole_.run({"eval", "--verify", "nightly", "--json"}); };
  EXPECT_EQ(verify().exit.code, 2) << "there is no such folder";
  for (int night = 1; night <= 3; ++night) {
    const Captured said = eval({"--archive", "nightly", "--keep", "2", "--json"}, "prose.yaml");
    ASSERT_EQ(said.exit.code, 0) << said.err;
    const Node archived = *parse_json(said.out, "out").value().find("archived");
    EXPECT_EQ(archived.text_at("entry"), std::to_string(night));
    EXPECT_EQ(archived.text_at("removed"), night == 3 ? "1" : "0");
    EXPECT_NE(said.err.find(archived.text_at("sha256")), std::string::npos) << said.err;
  }
  const std::vector<Node> lines = samples_in("nightly/00000003.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  const Node& held = *lines[0].find("results");
  EXPECT_EQ(held.text_at("suite_sha256").size(), 64U);
  EXPECT_EQ(held.find("files")->items().size(), 2U) << "the suite and its text";
  EXPECT_EQ(held.find("models")->items()[0].text_at("hash").size(), 32U);
  EXPECT_EQ(lines[0].text_at("time").size(), 24U);
  EXPECT_EQ(lines[1].text_at("task"), "prose");
  EXPECT_EQ(lines[1].text_at("words"), "181");
  const Captured holds = verify();
  EXPECT_EQ(holds.exit.code, 0) << holds.out << holds.err;
  EXPECT_EQ(parse_json(holds.out, "out")->text_at("entries"), "2");
  std::string second = text_of(systole_.folder() / "nightly/00000002.jsonl");
  second.replace(second.find("\"words\":181"), 11, "\"words\":182");
  systole_.write("nightly/00000002.jsonl", second);
  const Captured broken = systole_.run({"eval", "--verify", "nightly"});
  EXPECT_EQ(broken.exit.code, 1) << broken.err;
  EXPECT_EQ(broken.out.find("entry 2 does not fit: its SHA-256 is "), 0U) << broken.out;
  const Captured kept = eval({"--archive", "nightly", "--keep", "1"}, "prose.yaml");
  EXPECT_EQ(kept.exit.code, 1) << "retention does not hide it";
  EXPECT_NE(kept.err.find("the results are archived, but"), std::string::npos) << kept.err;
  EXPECT_TRUE(std::filesystem::exists(systole_.folder() / "nightly/00000002.jsonl"));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"eval", "--verify", "nightly", "prose.yaml"},
        std::vector<std::string>{"eval", "prose.yaml"}, std::vector<std::string>{"eval"},
        std::vector<std::string>{"eval", "prose.yaml", "--model", "model", "--keep", "1"}}) {
    EXPECT_EQ(systole_.run(wrong).exit.code, 2);
  }
}

TEST_F(EvalCommand, requirements_gate_with_a_code_of_their_own) {
  const Captured kept = eval({"--require", "next.acc>=1", "--require", "taken.exact_match<0.5"});
  EXPECT_EQ(kept.exit.code, 0) << kept.err;
  const Captured missed = eval({"--require", "next.acc>=1", "--require", "taken.exact_match>=0.71"});
  EXPECT_EQ(missed.exit.code, 4) << missed.err;
  EXPECT_NE(missed.out.find("exact_match"), std::string::npos) << "results are printed all the same";
  EXPECT_NE(missed.err.find("model: required is taken.exact_match>=0.71, and it is 0"), std::string::npos)
      << missed.err;
  for (const auto& [text, said] :
       std::vector<std::pair<std::string, std::string>>{{"nxt.acc>=1", "did you mean 'next'?"},
                                                        {"next.exact_match>=1", "valid: acc, acc_norm, acc_bytes"},
                                                        {"next.acc=1", "is no requirement"},
                                                        {"next.acc>=much", "is no requirement"}}) {
    const Captured wrong = eval({"--require", text, "--out", "never.json"});
    EXPECT_EQ(wrong.exit.code, 2) << text;
    EXPECT_NE(wrong.err.find(said), std::string::npos) << wrong.err;
  }
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "never.json"));
}

TEST_F(EvalCommand, a_judge_at_another_endpoint_scores_answers) {
  std::atomic<int> asked = 0;
  std::mutex mutex;
  std::string seen;
  StubServer server([&](const StubRequest& request, StubAnswer& answer) {
    if (asked++ == 0) return answer.whole(503, "busy", {{"Retry-After", "0"}});
    if (request.header("authorization") != "Bearer sesame") return answer.whole(401, "who? sesame?");
    const std::lock_guard lock(mutex);
    seen = request.path + " " + request.body;
    answer.whole(200, "{\"choices\": [{\"message\": {\"content\": \"I say 7 of 10.\"}}]}");
  });
  const auto suite = [&](const std::string& key) {
    return "suite: 1\ntasks:\n  - name: polite\n    kind: judge\n    data: prompts.jsonl\n    context: \"{prompt}\"\n" +
           fmt::format(
               "    tokens: 1\n    judge: {{ url: \"{}/v1\", model: large, key: \"{}\", scores: [1, 10], pattern: "
               "'say (\\d+)', prompt: \"How good is <{{response}}>?\" }}\n",
               server.url(), key);
  };
  systole_.write_secret("key", "sesame\n");
  systole_.write_secret("other", "open\n");
  systole_.write("judged.yaml", suite("file:key"));
  const Captured said =
      eval({"--json", "--require", "polite.score>=7", "--require", "polite.refused<0.1"}, "judged.yaml");
  ASSERT_EQ(said.exit.code, 0) << said.err;
  EXPECT_EQ(number_at(*parse_json(said.out, "out").value().find("metrics"), "polite.score"), 7);
  EXPECT_EQ(asked, 2) << "the first was too busy";
  EXPECT_NE(seen.find("/v1/chat/completions {"), std::string::npos) << seen;
  EXPECT_NE(seen.find("How good is <j>?"), std::string::npos) << seen;
  systole_.write("wrong.yaml", suite("file:other"));
  const Captured wrong = eval({}, "wrong.yaml");
  EXPECT_EQ(wrong.exit.code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("does not answer: status 401"), std::string::npos) << wrong.err;
}

TEST_F(EvalCommand, a_judge_that_ends_leaves_what_it_said) {
  std::atomic<int> asked = 0;
  StubServer server([&](const StubRequest&, StubAnswer& answer) {
    if (asked++ > 0) return answer.whole(404, "gone");
    answer.whole(200, "{\"choices\": [{\"message\": {\"content\": \"7\"}}]}");
  });
  systole_.write("two.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n");
  systole_.write(
      "ends.yaml",
      "suite: 1\ntasks:\n  - { name: polite, kind: judge, data: two.jsonl, context: \"{prompt}\", tokens: 1, "
      "judge: { url: \"" +
          server.url() + "/v1\", model: large, scores: [1, 10], pattern: '(\\d+)', prompt: \"<{response}>?\" } }\n");
  const Captured said = eval({"--samples", "said.jsonl"}, "ends.yaml");
  EXPECT_EQ(said.exit.code, 2) << said.err;
  EXPECT_NE(said.err.find("task 'polite', item 1: the judge at "), std::string::npos) << said.err;
  const std::vector<Node> samples = samples_in("said.jsonl");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(number_at(samples[0], "score"), 7);
}

TEST_F(EvalCommand, answers_that_are_programs_are_run) {
  const std::string rest =
      "kind: pass_at_k, data: prompts.jsonl, context: \"{prompt}\", tokens: 1, file: p.sh, command: [sh, p.sh], ";
  systole_.write("code.yaml", "suite: 1\ntasks:\n  - { name: right, " + rest +
                                  "program: \"test '{response}' = {answer}\" }\n  - { name: wrong, " + rest +
                                  "program: \"exit 3 # {response}\" }\n");
  const Captured said = eval({"--unsafe-command", "--samples", "samples.jsonl", "--json"}, "code.yaml");
  ASSERT_EQ(said.exit.code, 0) << said.err;
  const Node document = parse_json(said.out, "out").value();
  EXPECT_EQ(number_at(*document.find("metrics"), "right.pass@1"), 1);
  EXPECT_EQ(number_at(*document.find("metrics"), "wrong.pass@k"), 0);
  const std::vector<Node> samples = samples_in("samples.jsonl");
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1].find("failures")->items()[0].text().find("exit code 3"), 0U);
  const Captured safe = eval({}, "code.yaml");
  if (safe.exit.code != 0) {
    EXPECT_EQ(safe.exit.code, 3) << safe.err;
    EXPECT_NE(safe.err.find("--unsafe-command"), std::string::npos) << safe.err;
  }
  systole_.write("gone.yaml",
                 "suite: 1\ntasks:\n  - { name: gone, kind: pass_at_k, data: prompts.jsonl, context: \"{prompt}\", "
                 "program: \"{response}\", command: [no-such-program-of-ours] }\n");
  const Captured gone = systole_.run({"eval", "gone.yaml", "--model", "nowhere", "--unsafe-command"});
  EXPECT_EQ(gone.exit.code, 2) << gone.err;
  EXPECT_NE(gone.err.find("no-such-program-of-ours"), std::string::npos) << "before a model is loaded: " << gone.err;
}

TEST_F(EvalCommand, a_context_that_is_too_long_loses_its_beginning_and_that_is_said) {
  systole_.write(
      "long.yaml",
      "suite: 1\ntasks:\n"
      "  - { name: long, kind: multiple_choice, data: long.jsonl, context: \"{c}\", choices: [a, b], target: a }\n"
      "  - { name: answer, kind: exact_match, data: long.jsonl, context: \"{c}\", target: a, tokens: 2 }\n");
  systole_.write("long.jsonl", "{\"c\": \"" + std::string(300, 'x') + "\"}\n{\"c\": \"x\"}\n");
  const Captured said = eval({}, "long.yaml");
  EXPECT_EQ(said.exit.code, 0) << said.err;
  for (const char* task : {"long", "answer"}) {
    EXPECT_NE(said.err.find(fmt::format("task '{}': 1 context longer than the 64 positions of 'model'", task)),
              std::string::npos)
        << said.err;
  }
}

TEST_F(EvalCommand, an_item_of_which_nothing_can_be_said_ends_nothing) {
  systole_.write(
      "long.yaml",
      "suite: 1\ntasks:\n"
      "  - { name: long, kind: multiple_choice, data: long.jsonl, context: x, choices: [\"{c}\", b], target: b }\n");
  std::string data = "{\"c\": \"a\"}\n";
  for (int i = 0; i < 4; ++i) data += "{\"c\": \"" + std::string(300, 'x') + "\"}\n";
  systole_.write("long.jsonl", data);
  const Captured said = eval({"--samples", "samples.jsonl"}, "long.yaml");
  EXPECT_EQ(said.exit.code, 0) << said.err;
  EXPECT_NE(said.err.find("task 'long': 4 items counted as wrong for 'model': item 1: text 0 has "), std::string::npos)
      << said.err;
  EXPECT_NE(said.err.find("; item 3: "), std::string::npos) << said.err;
  EXPECT_EQ(said.err.find("item 4: "), std::string::npos) << "three are shown: " << said.err;
  EXPECT_EQ(samples_in("samples.jsonl").size(), 5U);
}

TEST_F(EvalCommand, what_must_fail_fails_before_the_first_task) {
  const std::string task =
      "suite: 1\ntasks:\n"
      "  - { name: long, kind: multiple_choice, data: long.jsonl, context: \"{c}\", choices: [a, b], target: a }\n";
  systole_.write("long.yaml", task);
  systole_.write("late.yaml", task +
                                  "  - { name: answer, kind: exact_match, data: long.jsonl, context: \"{c}\", "
                                  "target: a, tokens: 64 }\n");
  systole_.write("long.jsonl", "{\"c\": \"" + std::string(300, 'x') + "\"}\n");
  constexpr const char* kRan = "longer than the 64 positions";
  ASSERT_NE(eval({}, "long.yaml").err.find(kRan), std::string::npos) << "a task that ran says so";
  const Captured late = eval({}, "late.yaml"), gone = eval({"--model", "nowhere"}, "long.yaml"),
                 same = eval({"--out", "r.json", "--samples", "./r.json"}, "long.yaml");
  EXPECT_NE(late.err.find("leave no room for a prompt"), std::string::npos) << late.err;
  EXPECT_NE(gone.err.find("nowhere"), std::string::npos) << gone.err;
  EXPECT_NE(same.err.find("--out and --samples are both 'r.json'"), std::string::npos) << same.err;
  for (const Captured* said : {&late, &gone, &same}) {
    EXPECT_NE(said->exit.code, 0);
    EXPECT_EQ(said->err.find(kRan), std::string::npos) << said->err;
  }
}

TEST_F(EvalCommand, wrong_suites_are_refused_at_their_place) {
  systole_.write("bad.jsonl", "{\"a\": \"x\", \"b\": \"y\"}\n\n{\"a\": \"x\"\n");
  systole_.write("two.jsonl", "{\"a\": \"x\", \"b\": \"y\"}\n{\"a\": \"x\"}\n");
  const std::string choice = "{ name: t, kind: multiple_choice, data: [{ a: x, b: [u, v], n: 2 }], context: \"{a}\", ";
  const std::string match = "{ name: t, kind: exact_match, context: \"{a}\", target: \"{b}\", ";
  for (const auto& [task, said] : std::vector<std::pair<std::string, std::string>>{
           {"{ name: t, kind: multiple, data: x }", "wrong.yaml:3:"},
           {match + "data: two.jsonl, tokns: 1 }", "did you mean 'tokens'?"},
           {match + "data: none.jsonl }", "none.jsonl"},
           {match + "data: bad.jsonl }", "bad.jsonl:3:"},
           {match + "data: two.jsonl }", "two.jsonl:2:1: error: b: there is no such field"},
           {match + "data: [] }", "there are no examples"},
           {match + "data: two.jsonl, stop: \"x\" }", "expected a list of texts"},
           {match + "data: two.jsonl, tokens: 0 }", "wrong.yaml:3:"},
           {match + "data: two.jsonl, few_shot: { data: [], count: 1 } }", "there are no examples"},
           {choice + "choices: \"{a}\", target: \"{n}\" }", "the example has 1 choice"},
           {choice + "choices: \"{b}\", target: \"{n}\" }", "the target is 2, and the choices are 0 to 1"},
           {choice + "choices: \"{b}\", target: \"{a}\" }", "the target 'x' is none of the choices"},
           {choice + "choices: \"{b\", target: \"{a}\" }", "a '{' without its '}'"},
           {"{ name: t, kind: regex, data: two.jsonl, context: a, target: b, pattern: \"(\" }",
            "no regular expression"},
           {"{ name: t, kind: bits_per_byte }", "one of 'file' and 'data' is needed"}}) {
    EXPECT_NE(refused(task).find(said), std::string::npos) << task << "\n" << refused(task);
  }
  systole_.write("wrong.yaml", "suite: 2\ntasks: [{}]\n");
  EXPECT_NE(eval({}, "wrong.yaml").err.find("hint: suite: 1"), std::string::npos);
  const Captured none = eval({}, "nowhere.yaml");
  EXPECT_EQ(none.exit.code, 2) << none.err;
}

TEST_F(EvalCommand, what_a_model_cannot_do_is_said_and_nothing_is_left) {
  std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/t5", systole_.folder() / "t5");
  const Captured scored =
      systole_.run({"eval", "suite.yaml", "--model", "t5", "--backend", "reference", "--out", "results.json"});
  EXPECT_EQ(scored.exit.code, 3) << scored.err;
  EXPECT_NE(scored.err.find("'t5' does not say how likely a text is"), std::string::npos) << scored.err;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "results.json"));
  for (const auto& file : std::filesystem::directory_iterator(systole_.folder()))
    EXPECT_NE(file.path().extension(), ".part") << file.path();
  systole_.write(
      "answers.yaml",
      "suite: 1\ntasks:\n  - { name: a, kind: exact_match, data: prompts.jsonl, context: \"{prompt}\", target: "
      "\"{answer}\", tokens: 2 }\n");
  EXPECT_EQ(systole_.run({"eval", "answers.yaml", "--model", "t5", "--backend", "reference"}).exit.code, 0);
  EXPECT_NE(eval({"--context", "2"}, "answers.yaml").err.find("leave no room for a prompt"), std::string::npos);
}

}  // namespace
}  // namespace systole::cli

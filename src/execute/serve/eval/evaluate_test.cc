#include "execute/serve/eval/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "execute/serve/eval/log_likelihood.h"
#include "execute/serve/eval/testing/tiny_scorer.h"
#include "ground/net/testing/http_stub.h"

namespace systole {
namespace {

// Its answers are of ASCII, and as long as they may be.
EvalModel model_of(const TinyScorer& scorer) {
  std::vector<std::int32_t> never;
  for (std::int32_t token = 0; token < scorer.engine->vocabulary(); ++token) {
    const std::string_view bytes =
        token < tiny_tokenizer().vocabulary() ? tiny_tokenizer().bytes_of(token) : std::string_view();
    if (bytes.empty() || std::ranges::any_of(bytes, [](char c) { return c < ' ' || c > '~'; })) never.push_back(token);
  }
  return {*scorer.engine, tiny_tokenizer(), {}, {}, never, [](std::string_view text) { return tiny_tokens(text); }};
}

Result<TaskScores> evaluated(const TinyScorer& scorer, const EvalTask& task) {
  return evaluate(task, model_of(scorer), [](std::size_t) { return true; });
}

std::size_t largest(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

// The choices' likelihoods alone, and divided by len(choice) and len(choice.encode()).
TEST(Evaluate, multiple_choice_counts_the_likeliest_in_all_and_by_length) {
  const TinyScorer scorer;
  EvalTask task{.name = "t", .kind = EvalKind::multiple_choice};
  for (const char* context : {"badoki", "lumen soé", "men", "nor pa ri", "wil", "ki lu"})
    task.items.push_back({.context = context, .choices = {"b", "badoki lumen", "éééé"}, .gold = 1});
  const TaskScores scores = evaluated(scorer, task).value();
  LogLikelihood likelihood(*scorer.engine, tiny_tokenizer(), {});
  double acc = 0, norm = 0, bytes = 0;
  bool differ = false;
  for (std::size_t i = 0; i < task.items.size(); ++i) {
    std::vector<double> all;
    for (const char* text : {" b", " badoki lumen", " éééé"})
      all.push_back(
          likelihood.of_continuations(task.items[i].context, std::vector<std::string>{text}).value()[0].value);
    const std::vector<double> per_character{all[0] / 1, all[1] / 12, all[2] / 4},
        per_byte{all[0] / 1, all[1] / 12, all[2] / 8};
    acc += largest(all) == 1 ? 1 : 0;
    norm += largest(per_character) == 1 ? 1 : 0;
    bytes += largest(per_byte) == 1 ? 1 : 0;
    differ |= largest(all) != largest(per_byte);
    const std::span<const Node> told = scores.samples[i].find("log_likelihoods")->items();
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(told[c].as_double().value(), all[c]);
  }
  EXPECT_TRUE(differ) << "the length decides nothing here";
  ASSERT_EQ(scores.metrics.size(), 3U);
  EXPECT_DOUBLE_EQ(scores.metrics[0].value, acc / 6);
  EXPECT_DOUBLE_EQ(scores.metrics[1].value, norm / 6);
  EXPECT_DOUBLE_EQ(scores.metrics[2].value, bytes / 6);
}

TEST(Evaluate, bits_per_byte_weighs_texts_by_their_length) {
  const TinyScorer scorer;
  const EvalTask task{
      .name = "t", .kind = EvalKind::bits_per_byte, .items = {{.target = "badoki lumen"}, {.target = "soé"}}};
  const TaskScores scores = evaluated(scorer, task).value();
  LogLikelihood likelihood(*scorer.engine, tiny_tokenizer(), {});
  const double loss = -likelihood.of_text("badoki lumen").value().value - likelihood.of_text("soé").value().value;
  EXPECT_DOUBLE_EQ(scores.metrics[0].value, loss / std::log(2.0) / 16);  // 12 and 4 bytes
  EXPECT_DOUBLE_EQ(scores.metrics[1].value, std::exp(loss / 16));
  EXPECT_DOUBLE_EQ(scores.metrics[2].value, std::exp(loss / 3));  // 2 words and 1
}

// A task's answer is that of its item alone, wherever stop strings and patterns cut it.
TEST(Evaluate, answers_do_not_depend_on_others_and_end_at_stop_strings) {
  EvalTask task{.name = "t", .kind = EvalKind::exact_match, .tokens = 8};
  for (const char* context : {"badoki", "lumen soé", "men", "nor pa ri"})
    task.items.push_back({.context = context, .target = "never"});
  const TinyScorer alone(1, true), together(3, true);
  const TaskScores one = evaluated(alone, task).value(), many = evaluated(together, task).value();
  EXPECT_EQ(one.samples, many.samples);
  EXPECT_EQ(one.metrics[0].value, 0);
  const std::string answer = one.samples[0].find("answer")->text();
  ASSERT_GT(answer.size(), 2U);
  task.items.resize(1);
  task.items[0].target = "\n " + answer + " ";  // white space around does not count
  EXPECT_EQ(evaluated(alone, task)->metrics[0].value, 1);
  const std::string last = answer.substr(answer.size() - 1);
  task.stop = {last};
  EXPECT_EQ(evaluated(alone, task)->samples[0].find("answer")->text(), answer.substr(0, answer.find(last)));
}

TEST(Evaluate, a_pattern_takes_a_part_of_the_answer) {
  const TinyScorer scorer(1, true);
  EvalTask task{.name = "t", .kind = EvalKind::regex, .tokens = 8};
  task.items.push_back({.context = "badoki", .target = ""});
  task.pattern = TextPattern::compile("^(?s:.)").value();
  const TaskScores first = evaluated(scorer, task).value();
  const std::string answer = first.samples[0].find("answer")->text(), taken = first.samples[0].find("taken")->text();
  EXPECT_TRUE(answer.starts_with(taken)) << answer;
  EXPECT_FALSE(taken.empty());
  task.pattern = TextPattern::compile("no such answer").value();
  const TaskScores none = evaluated(scorer, task).value();
  EXPECT_TRUE(none.samples[0].find("taken")->is_null());
  EXPECT_EQ(none.metrics[0].value, 0) << "no match is no answer, also where the target is empty";
}

TEST(Evaluate, prompts_keep_their_end_and_an_evaluation_can_be_interrupted) {
  const TinyScorer scorer(1, true);
  EvalTask task{.name = "t", .kind = EvalKind::exact_match, .tokens = 20};
  task.items.push_back({.context = "badoki lumen soé badoki lumen soé", .target = "x"});
  task.items.push_back({.context = "a", .target = "x"});
  ASSERT_GT(tiny_tokens(task.items[0].context).size(), 4U);
  EXPECT_EQ(evaluated(scorer, task)->cut_contexts, 1);
  task.tokens = 24;
  EXPECT_NE(evaluated(scorer, task).error().message.find("leave no room for a prompt"), std::string::npos);
  std::string longest;
  for (int i = 0; i < 30; ++i) longest += "badoki ";
  const EvalTask choice{
      .name = "c", .kind = EvalKind::multiple_choice, .items = {{.context = "a", .choices = {"b", longest}}}};
  const Result<TaskScores> ended = evaluate(choice, model_of(scorer), [](std::size_t) { return false; });
  EXPECT_EQ(ended.error().kind, ErrorKind::interrupted);
  const EvalTask text{.name = "p", .kind = EvalKind::bits_per_byte, .items = {{.target = longest}}};
  int calls = 0;
  const Result<TaskScores> amid = evaluate(text, model_of(scorer), [&](std::size_t) { return ++calls < 2; });
  ASSERT_FALSE(amid.ok()) << "a long text is given up between its windows";
  EXPECT_EQ(amid.error().kind, ErrorKind::interrupted);
}

TEST(Evaluate, an_item_of_which_nothing_can_be_said_counts_as_wrong_and_is_named) {
  const TinyScorer scorer(1, true);
  std::string longest;
  for (int i = 0; i < 30; ++i) longest += "badoki ";
  const EvalTask choice{
      .name = "c",
      .kind = EvalKind::multiple_choice,
      .items = {{.context = "a", .choices = {"b", longest}}, {.context = "a", .choices = {"b", "b"}}}};
  const TaskScores chosen = evaluated(scorer, choice).value();
  ASSERT_EQ(chosen.unjudged.size(), 1U);
  EXPECT_TRUE(chosen.unjudged[0].message.starts_with("item 0: text 1 has ")) << chosen.unjudged[0].message;
  ASSERT_EQ(chosen.metrics.size(), 3U);
  for (const Metric& metric : chosen.metrics) EXPECT_EQ(metric.value, 0.5) << metric.name << ": the first is wrong";
  ASSERT_EQ(chosen.samples.size(), 2U);
  EXPECT_TRUE(chosen.samples[0].find("log_likelihoods")->items().empty());

  EvalTask search{.name = "t", .kind = EvalKind::regex, .items = {{.context = "badoki", .target = ""}}, .tokens = 8};
  search.pattern = TextPattern::compile(R"((*LIMIT_MATCH=1).*.*\d)").value();
  const TaskScores searched = evaluated(scorer, search).value();
  ASSERT_EQ(searched.unjudged.size(), 1U);
  EXPECT_TRUE(searched.unjudged[0].message.starts_with("item 0: '(*LIMIT")) << searched.unjudged[0].message;
  EXPECT_EQ(searched.metrics[0].value, 0);
  EXPECT_TRUE(searched.samples[0].find("taken")->is_null());

  spoil_weights(*scorer.model, *scorer.engine);
  const Result<TaskScores> damaged = evaluated(scorer, choice);
  ASSERT_FALSE(damaged.ok()) << "what is wrong with the model is wrong with all items";
  EXPECT_TRUE(damaged.error().message.starts_with("task 'c', item ")) << damaged.error().message;
}

// Two answers get scores, one is refused.
TEST(Evaluate, a_judge_scores_answers_and_one_that_it_refuses_counts_as_the_lowest) {
  std::atomic<int> asked = 0;
  StubServer server([&](const StubRequest&, StubAnswer& answer) {
    const char* const said[] = {"Score: 9", "Score: 4", "I would rather not."};
    answer.whole(200, fmt::format("{{\"choices\": [{{\"message\": {{\"content\": \"{}\"}}}}]}}", said[asked++ % 3]));
  });
  const TinyScorer scorer(1, true);
  FakeClock clock;
  EvalModel model = model_of(scorer);
  model.clock = &clock;
  EvalTask task{.name = "t", .kind = EvalKind::judge, .tokens = 4};
  task.judge = JudgeSpec{.url = server.url(),
                         .model = "m",
                         .prompt = FieldTemplate::parse("{q}{response}").value(),
                         .pattern = TextPattern::compile("Score: (\\d+)").value(),
                         .lowest = 1,
                         .highest = 10};
  for (const char* text : {"badoki", "lumen", "men"})
    task.items.push_back({.context = text, .fields = Node::map({{"q", text}})});
  const TaskScores scores = evaluate(task, model, [](std::size_t) { return true; }).value();
  ASSERT_EQ(scores.metrics.size(), 2U);
  EXPECT_DOUBLE_EQ(scores.metrics[0].value, (9 + 4 + 1) / 3.0);
  EXPECT_DOUBLE_EQ(scores.metrics[1].value, 1 / 3.0);
  ASSERT_EQ(scores.unjudged.size(), 1U);
  EXPECT_EQ(scores.unjudged[0].message, "item 2: the judge said no score");
  EXPECT_EQ(scores.samples[0].find("score")->as_double().value(), 9);
  EXPECT_TRUE(scores.samples[2].find("score")->is_null());
  EXPECT_EQ(scores.samples[2].text_at("judge"), "I would rather not.");
  EXPECT_EQ(asked, 3);
}

TEST(Evaluate, programs_are_sampled_for_each_item_and_tried) {
  EvalTask task{.name = "t", .kind = EvalKind::pass_at_k, .tokens = 6};
  task.program = ProgramSpec{.text = FieldTemplate::parse("{q}|{response}").value(),
                             .command = {"x"},
                             .samples = 4,
                             .k = 2,
                             .temperature = 1,
                             .seed = 7};
  for (const char* text : {"badoki", "lumen", "men"})
    task.items.push_back({.context = text, .fields = Node::map({{"q", text}})});
  const auto scored = [&](const TinyScorer& scorer) {
    EvalModel model = model_of(scorer);
    std::size_t calls = 0;
    model.run_program = [&](const ProgramSpec& spec, const std::string& text) -> Result<ProgramTrial> {
      EXPECT_TRUE(text.starts_with(task.items[calls / 4].context + "|")) << text;
      EXPECT_EQ(spec.k, 2);
      const bool passed = calls++ % 4 == 1;  // one of each item's four
      return ProgramTrial{passed, passed ? "" : "no"};
    };
    TaskScores scores = evaluate(task, model, [](std::size_t) { return true; }).value();
    EXPECT_EQ(calls, 12U);
    return scores;
  };
  const TinyScorer alone(1, true), together(3, true);
  const TaskScores one = scored(alone), many = scored(together);
  EXPECT_EQ(one.samples, many.samples) << "draws depend on nothing but the seed and their number";
  ASSERT_EQ(one.metrics.size(), 2U);
  EXPECT_DOUBLE_EQ(one.metrics[0].value, 0.25);
  EXPECT_DOUBLE_EQ(one.metrics[1].value, 0.5);
  EXPECT_TRUE(one.samples[0].find("failures")->items()[1].is_null());
  EXPECT_EQ(one.samples[0].find("failures")->items()[2].text(), "no");
}

}  // namespace
}  // namespace systole

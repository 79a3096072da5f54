#include "execute/serve/eval/evaluate.h"

#include <algorithm>
#include <numbers>

#include "execute/serve/answer_text.h"
#include "execute/serve/eval/log_likelihood.h"
#include "execute/serve/eval/text_counts.h"
#include "execute/serve/serving_loop.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

Error interrupted() { return error(ErrorKind::interrupted, "the evaluation was interrupted"); }

Error of_item(Error error, std::size_t item) {
  error.message = fmt::format("item {}: {}", item, error.message);
  return error;
}

Error of_item(Error error, const EvalTask& task, std::size_t item) {
  error = of_item(std::move(error), item);
  error.message = fmt::format("task '{}', {}", task.name, error.message);
  return error;
}

// 1: the first of the largest values is that one. 0: another, or there is none.
double is_first_largest(const std::vector<double>& values, std::size_t index) {
  return !values.empty() && std::ranges::max_element(values) - values.begin() == static_cast<std::ptrdiff_t>(index);
}

Result<TaskScores> choose(const EvalTask& task, const EvalModel& model, const OnItems& told) {
  LogLikelihood likelihood(model.engine, model.tokenizer, model.before);
  TaskScores made;
  std::vector<double> acc, acc_norm, acc_bytes;
  for (std::size_t i = 0; i < task.items.size(); ++i) {
    if (!told(i)) return interrupted();
    const EvalItem& item = task.items[i];
    std::vector<std::string> texts;
    for (const std::string& choice : item.choices) texts.push_back(task.delimiter + choice);
    Result<std::vector<LogLikelihood::Score>> scores = likelihood.of_continuations(item.context, texts);
    if (!scores.ok()) {
      if (scores.error().kind != ErrorKind::does_not_fit) return of_item(std::move(scores).error(), task, i);
      made.unjudged.push_back(of_item(std::move(scores).error(), i));
      scores = std::vector<LogLikelihood::Score>();
    }
    std::vector<double> all, per_character, per_byte;
    bool cut = false;
    for (std::size_t c = 0; c < scores->size(); ++c) {
      const double value = (*scores)[c].value;
      all.push_back(value);
      per_character.push_back(value / static_cast<double>(count_characters(item.choices[c])));
      per_byte.push_back(value / static_cast<double>(item.choices[c].size()));
      cut |= (*scores)[c].cut;
    }
    made.cut_contexts += cut ? 1 : 0;
    acc.push_back(is_first_largest(all, item.gold));
    acc_norm.push_back(is_first_largest(per_character, item.gold));
    acc_bytes.push_back(is_first_largest(per_byte, item.gold));
    made.samples.push_back(Node::map({{"context", item.context},
                                      {"choices", Node::sequence({item.choices.begin(), item.choices.end()})},
                                      {"gold", item.gold},
                                      {"log_likelihoods", Node::sequence({all.begin(), all.end()})},
                                      {"acc", acc.back()},
                                      {"acc_norm", acc_norm.back()},
                                      {"acc_bytes", acc_bytes.back()}}));
  }
  made.metrics = {mean_metric("acc", acc), mean_metric("acc_norm", acc_norm), mean_metric("acc_bytes", acc_bytes)};
  return made;
}

Result<TaskScores> measure_texts(const EvalTask& task, const EvalModel& model, const OnItems& told) {
  LogLikelihood likelihood(model.engine, model.tokenizer, model.before);
  TaskScores made;
  std::vector<double> losses, bytes, words;
  for (std::size_t i = 0; i < task.items.size(); ++i) {
    const std::string& text = task.items[i].target;
    Result<LogLikelihood::Score> score = likelihood.of_text(text, [&] { return told(i); });
    if (!score.ok()) return of_item(std::move(score).error(), task, i);
    losses.push_back(-score->value);
    bytes.push_back(static_cast<double>(text.size()));
    words.push_back(static_cast<double>(count_words(text)));
    made.samples.push_back(Node::map({{"log_likelihood", score->value},
                                      {"tokens", score->tokens},
                                      {"bytes", text.size()},
                                      {"words", count_words(text)}}));
  }
  const Metric per_byte = ratio_metric("", losses, bytes);
  made.metrics = {scaled("bits_per_byte", per_byte, 1 / std::numbers::ln2), exponential("byte_perplexity", per_byte),
                  exponential("word_perplexity", ratio_metric("", losses, words))};
  return made;
}

// Tokens of a prompt, at most.
std::int64_t room_for_prompt(const EvalTask& task, const Engine& engine) {
  return engine.encodes() ? engine.longest_prompt() : engine.cache() - task.tokens;
}

// The prompts of a task's items. The end of one that is too long is kept, as the harness does.
Result<std::vector<std::vector<std::int32_t>>> prompts_of(const EvalTask& task, const EvalModel& model,
                                                          std::int64_t& cut) {
  TRY(check_room(task, model.engine));
  const std::int64_t most = room_for_prompt(task, model.engine);
  std::vector<std::vector<std::int32_t>> prompts;
  for (const EvalItem& item : task.items) {
    std::vector<std::int32_t>& prompt = prompts.emplace_back(model.prompt_of(item.context));
    const auto length = static_cast<std::int64_t>(prompt.size());
    if (length <= most) continue;
    prompt.erase(prompt.begin(), prompt.begin() + (length - most));
    ++cut;
  }
  return prompts;
}

// The text of each item's answer; of a program's, that of each sample, one item after the other.
Result<std::vector<std::string>> answers_of(const EvalTask& task, const EvalModel& model,
                                            const std::vector<std::vector<std::int32_t>>& prompts,
                                            const OnItems& told) {
  const std::size_t each = task.program ? static_cast<std::size_t>(task.program->samples) : 1;
  const std::size_t all = prompts.size() * each;
  ServingLoop loop(model.engine, {.waiting = static_cast<std::int64_t>(all)});
  SequenceRequest request{.max_tokens = task.tokens, .stop = model.ends};
  request.sampling.temperature = task.program ? task.program->temperature : 0;
  request.sampling.seed = task.program ? task.program->seed : 0;
  request.sampling.never = model.never;
  std::erase_if(request.sampling.never, [&](std::int32_t token) {  // they may end an answer, so they may be drawn
    return std::ranges::find(model.ends, token) != model.ends.end();
  });
  request.stop.push_back(model.tokenizer.eos());
  const bool skips = model.engine.encodes() && model.tokenizer.begins_with_space();
  std::vector<AnswerText> texts(all, AnswerText(model.tokenizer, task.stop, skips));
  std::vector<std::string> answers(all);
  std::size_t done = 0;
  for (std::size_t i = 0; i < all; ++i) {
    request.id = i;
    request.draw = i;
    request.prompt = prompts[i / each];
    Status added = loop.add(request, {.token =
                                          [&, i](std::int32_t token) {
                                            answers[i] += texts[i].add(token);
                                            return !texts[i].stopped();
                                          },
                                      .end =
                                          [&, i](SequenceEnd) {
                                            answers[i] += texts[i].rest();
                                            ++done;
                                          }});
    if (!added.ok()) return of_item(std::move(added).error(), task, i / each);
  }
  while (TRY(loop.step())) {
    if (!told(done / each)) return interrupted();
  }
  return answers;
}

Result<TaskScores> answer(const EvalTask& task, const EvalModel& model, const OnItems& told) {
  TaskScores made;
  const std::vector<std::vector<std::int32_t>> prompts = TRY(prompts_of(task, model, made.cut_contexts));
  const std::vector<std::string> answers = TRY(answers_of(task, model, prompts, told));
  std::vector<double> right;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const EvalItem& item = task.items[i];
    std::optional<std::string> taken = answers[i];
    if (task.pattern) {
      Result<std::optional<std::string>> found = task.pattern->first(replace_invalid_utf8(answers[i]));
      if (found.ok()) {
        taken = std::move(found).value();
      } else {
        made.unjudged.push_back(of_item(std::move(found).error(), i));
        taken.reset();
      }
    }
    right.push_back(taken && without_space_around(*taken) == without_space_around(item.target) ? 1 : 0);
    Node sample = Node::map({{"context", item.context}, {"target", item.target}, {"answer", answers[i]}});
    if (task.pattern) sample.set("taken", taken ? Node(*taken) : Node());
    made.samples.push_back(std::move(sample.set("exact_match", right.back())));
  }
  made.metrics = {mean_metric("exact_match", right)};
  return made;
}

Result<TaskScores> judge_answers(const EvalTask& task, const EvalModel& model, const OnItems& told) {
  CHECK(task.judge && model.clock != nullptr, "task '{}' has no judge, or no clock", task.name);
  TaskScores made;
  Judge judge = TRY(Judge::open(*task.judge, *model.clock));
  const std::vector<std::vector<std::int32_t>> prompts = TRY(prompts_of(task, model, made.cut_contexts));
  const std::vector<std::string> answers = TRY(answers_of(task, model, prompts, told));
  std::vector<double> scores, refused;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!told(i)) return interrupted();
    const EvalItem& item = task.items[i];
    Node fields = item.fields;
    fields.set("response", replace_invalid_utf8(answers[i]));
    Result<Judgement> said = judge.score(fields, [&] { return !told(i); });
    if (!said.ok() && said.error().kind == ErrorKind::interrupted) return interrupted();
    if (!said.ok()) {
      made.ended = of_item(std::move(said).error(), task, i);
      break;
    }
    if (!said->score) made.unjudged.push_back(of_item(error(ErrorKind::invalid, "{}", said->why), i));
    scores.push_back(said->score.value_or(task.judge->lowest));
    refused.push_back(said->score ? 0 : 1);
    made.samples.push_back(Node::map({{"context", item.context},
                                      {"answer", answers[i]},
                                      {"judge", said->text},
                                      {"score", said->score ? Node(*said->score) : Node()},
                                      {"refused", refused.back()}}));
  }
  if (!made.ended) made.metrics = {mean_metric("score", scores), mean_metric("refused", refused)};
  return made;
}

Result<TaskScores> try_programs(const EvalTask& task, const EvalModel& model, const OnItems& told) {
  CHECK(task.program && model.run_program, "task '{}' has no program, or nothing runs it", task.name);
  const ProgramSpec& program = *task.program;
  TaskScores made;
  const std::vector<std::vector<std::int32_t>> prompts = TRY(prompts_of(task, model, made.cut_contexts));
  const std::vector<std::string> answers = TRY(answers_of(task, model, prompts, told));
  const auto each = static_cast<std::size_t>(program.samples);
  std::vector<double> once, any;
  for (std::size_t i = 0; i < task.items.size(); ++i) {
    Node fields = task.items[i].fields, texts = Node::sequence(), whys = Node::sequence();
    std::int64_t passed = 0;
    for (std::size_t s = 0; s < each; ++s) {
      if (!told(i)) return interrupted();
      const std::string& answer = answers[i * each + s];
      fields.set("response", answer);
      const std::string text = TRY(program.text.fill(fields));
      Result<ProgramTrial> trial = model.run_program(program, text);
      if (!trial.ok()) return of_item(std::move(trial).error(), task, i);
      passed += trial->passed ? 1 : 0;
      texts.push(answer);
      whys.push(trial->passed ? Node() : Node(trial->why));
    }
    once.push_back(pass_at_k(program.samples, passed, 1));
    any.push_back(pass_at_k(program.samples, passed, program.k));
    made.samples.push_back(Node::map({{"context", task.items[i].context},
                                      {"answers", std::move(texts)},
                                      {"failures", std::move(whys)},
                                      {"passed", passed},
                                      {"k", program.k},
                                      {"pass@1", once.back()},
                                      {"pass@k", any.back()}}));
  }
  made.metrics = {mean_metric("pass@1", once), mean_metric("pass@k", any)};
  return made;
}

}  // namespace

Status check_room(const EvalTask& task, const Engine& engine) {
  if (!asks_for_answers(task.kind) || room_for_prompt(task, engine) >= 1) return {};
  return error(ErrorKind::invalid, "task '{}': answers of {} tokens leave no room for a prompt in a context of {}",
               task.name, task.tokens, engine.cache())
      .hinted("give the task fewer `tokens`, or more --context");
}

Result<TaskScores> evaluate(const EvalTask& task, const EvalModel& model, const OnItems& told) {
  switch (task.kind) {
    case EvalKind::multiple_choice: return choose(task, model, told);
    case EvalKind::bits_per_byte: return measure_texts(task, model, told);
    case EvalKind::exact_match:
    case EvalKind::regex: return answer(task, model, told);
    case EvalKind::judge: return judge_answers(task, model, told);
    case EvalKind::pass_at_k: return try_programs(task, model, told);
  }
  return interrupted();
}

}  // namespace systole

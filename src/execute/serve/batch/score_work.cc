#include <algorithm>
#include <cmath>
#include <numbers>

#include "execute/serve/batch/batch_work.h"
#include "execute/serve/eval/log_likelihood.h"
#include "execute/serve/eval/text_counts.h"
#include "ground/base/counted.h"

namespace systole {
namespace {

// One row at a time, in slot 0.
class ScoreWork : public BatchWork {
 public:
  ScoreWork(const ServedApi& api, Engine& engine, std::vector<std::int32_t> before)
      : api_(api),
        engine_(engine),
        before_(static_cast<std::int64_t>(before.size())),
        encoder_(api.tokenizer),
        likelihood_(engine, api.tokenizer, std::move(before)) {}

  Result<RowSize> measure(BatchRequest asked) override { return size_of(std::get<ScoreRequest>(asked.asked)); }

  EngineCalls calls_of(std::span<const SequenceSize> inputs) const override {
    return score_calls(engine_.options(), inputs);
  }

  bool has_room() const override { return !begun_; }

  Status begin(const BatchRow& about, BatchRequest asked) override {
    auto& request = std::get<ScoreRequest>(asked.asked);
    const RowSize size = TRY(size_of(request));
    begun_ = Begun{about, std::move(request), size.prompt_tokens};
    return {};
  }

  Result<bool> step() override {
    if (!begun_) return false;
    const Begun row = std::move(*begun_);
    begun_.reset();
    Node body = TRY(row.request.labels.empty() ? score(row.request.text) : classify(row.request));
    body.set("usage", Node::map({{"prompt_tokens", row.tokens}, {"total_tokens", row.tokens}}));
    ended_.push_back(
        {.row = row.about.index, .prompt_tokens = row.tokens, .line = answer_line(row.about, to_json(body))});
    return true;
  }

 private:
  struct Begun {
    BatchRow about;
    ScoreRequest request;
    std::int64_t tokens = 0;
  };

  std::int64_t count(std::string_view text) {
    std::vector<std::int32_t> tokens;
    encoder_.encode(text, tokens);
    return static_cast<std::int64_t>(tokens.size());
  }

  Result<RowSize> size_of(const ScoreRequest& request) {
    return request.labels.empty() ? size_of_text(request.text) : size_of_labels(request);
  }

  // In the windows of LogLikelihood::of_text.
  Result<RowSize> size_of_text(const std::string& text) {
    if (text.empty()) return key_error(ErrorKind::invalid, "prompt", "the text is empty");
    RowSize size{.prompt_tokens = count(text)};
    const auto given = static_cast<std::size_t>(std::max<std::int64_t>(before_, 1)),
               most = static_cast<std::size_t>(engine_.cache());
    for (const std::size_t end : window_ends(given, given + static_cast<std::size_t>(size.prompt_tokens), most))
      size.sequences.push_back({.tokens = static_cast<std::int64_t>(std::min(end - 1, most))});
    return size;
  }

  // As LogLikelihood::of_continuations: the prompt once, all but its last token, and then each label.
  Result<RowSize> size_of_labels(const ScoreRequest& request) {
    const std::int64_t own = count(without_space_behind(request.text));
    const std::int64_t asked = std::max<std::int64_t>(before_ + own, 1);
    RowSize size{.prompt_tokens = asked};
    if (asked > 1) size.sequences.push_back({.tokens = asked - 1});
    for (const std::string& label : request.labels) {
      const std::int64_t tokens = count(request.text + request.delimiter + label) - own;
      if (tokens < 1) {
        return key_error(ErrorKind::invalid, "labels", "'{}' has no token of its own behind the prompt", label)
            .hinted("write another delimiter between prompt and label");
      }
      if (asked + tokens - 1 > engine_.cache()) {
        return key_error(ErrorKind::invalid, "prompt", "{} with the label '{}', and at most {} can be scored",
                         counted(asked + tokens, "token"), label, engine_.cache() + 1)
            .hinted("give the job more context, or take a shorter prompt");
      }
      size.prompt_tokens += tokens;
      size.sequences.push_back({.tokens = tokens});
    }
    return size;
  }

  Result<Node> score(const std::string& text) {
    const LogLikelihood::Score score = TRY(likelihood_.of_text(text));
    return Node::map({{"object", "score"},
                      {"model", api_.model},
                      {"log_probability", score.value},
                      {"tokens", score.tokens},
                      {"bytes", text.size()},
                      {"bits_per_byte", -score.value / std::numbers::ln2 / static_cast<double>(text.size())}});
  }

  Result<Node> classify(const ScoreRequest& request) {
    std::vector<std::string> texts;
    for (const std::string& label : request.labels) texts.push_back(request.delimiter + label);
    const std::vector<LogLikelihood::Score> scores = TRY(likelihood_.of_continuations(request.text, texts));
    const auto best = std::ranges::max_element(scores, {}, &LogLikelihood::Score::value);
    double sum = 0;
    for (const LogLikelihood::Score& score : scores) sum += std::exp(score.value - best->value);
    Node probabilities = Node::map(), logs = Node::map();
    for (std::size_t i = 0; i < scores.size(); ++i) {
      probabilities.set(request.labels[i], std::exp(scores[i].value - best->value) / sum);
      logs.set(request.labels[i], scores[i].value);
    }
    return Node::map({{"object", "classification"},
                      {"model", api_.model},
                      {"label", request.labels[static_cast<std::size_t>(best - scores.begin())]},
                      {"probabilities", std::move(probabilities)},
                      {"log_probabilities", std::move(logs)}});
  }

  const ServedApi& api_;
  Engine& engine_;
  const std::int64_t before_;  // tokens at the start of a sequence
  Encoder encoder_;
  LogLikelihood likelihood_;
  std::optional<Begun> begun_ = {};
};

}  // namespace

std::unique_ptr<BatchWork> make_score_work(const ServedApi& api, Engine& engine, std::vector<std::int32_t> before) {
  return std::make_unique<ScoreWork>(api, engine, std::move(before));
}

}  // namespace systole

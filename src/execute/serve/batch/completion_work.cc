#include <algorithm>
#include <map>
#include <utility>

#include "execute/serve/answer_choice.h"
#include "execute/serve/batch/batch_work.h"

namespace systole {
namespace {

class CompletionWork : public BatchWork {
 public:
  CompletionWork(const ServedApi& api, Engine& engine, std::int64_t now)
      : api_(api), engine_(engine), now_(now), forms_(api), loop_(engine, {.waiting = engine.slots() + kMostChoices}) {}

  Result<RowSize> measure(BatchRequest asked) override {
    auto& request = std::get<CompletionRequest>(asked.asked);
    RowSize size;
    for (const Tokens& prompt : TRY(prompts_of(request))) {
      const auto tokens = static_cast<std::int64_t>(prompt.size());
      // The last token of an answer takes no place in the cache.
      const std::int64_t room = engine_.encodes() ? engine_.cache() : engine_.cache() - tokens + 1;
      size.prompt_tokens += tokens;
      size.sequences.insert(size.sequences.end(), static_cast<std::size_t>(request.n),
                            SequenceSize{tokens, std::min(request.max_tokens, room)});
    }
    return size;
  }

  EngineCalls calls_of(std::span<const SequenceSize> sequences) const override {
    return generation_calls(engine_.options(), sequences);
  }

  // A row that begins gets a slot in the next step, so no more rows have begun than the engine has slots.
  bool has_room() const override { return loop_.waiting() + loop_.running() < engine_.slots(); }

  Status begin(const BatchRow& about, BatchRequest asked) override {
    auto made = std::make_unique<Row>();
    Row& row = *made;
    row.about = about;
    row.request = std::move(std::get<CompletionRequest>(asked.asked));
    const std::vector<Tokens> prompts = TRY(prompts_of(row.request));
    row.form = TRY(forms_.form_of(row.request));
    row.form.call_ids = about.index;
    const auto n = static_cast<std::size_t>(row.request.n);
    for (std::size_t i = 0; i < prompts.size() * n; ++i)
      row.choices.emplace_back(api_, row.request, row.form, i, row.request.prompts[i / n], prompts[i / n]);
    for (const Tokens& prompt : prompts) row.usage.prompt_tokens += static_cast<std::int64_t>(prompt.size());
    row.open = row.choices.size();
    SequenceRequest sequence = common_sequence(api_, row.request, row.form, "");
    const std::uint64_t first = next_id_;
    for (std::size_t i = 0; i < row.choices.size(); ++i) {
      sequence.id = next_id_++;
      sequence.prompt = prompts[i / n];
      sequence.draw = i + (asked.seeded ? 0 : about.index * static_cast<std::size_t>(kMostChoices));
      Status added = loop_.add(sequence, receiver_of(row, i));
      if (added.ok()) continue;
      for (std::uint64_t id = first; id < sequence.id; ++id) loop_.remove(id);
      return added;
    }
    rows_.emplace(about.index, std::move(made));
    return {};
  }

  Result<bool> step() override {
    const bool stepped = TRY(loop_.step());
    for (const std::size_t index : over_) rows_.erase(index);
    over_.clear();
    return stepped;
  }

 private:
  using Tokens = std::vector<std::int32_t>;
  struct Row {
    BatchRow about;
    CompletionRequest request;
    CompletionForm form;
    std::vector<AnswerChoice> choices = {};
    Usage usage = {};
    std::size_t open = 0;  // choices that have not ended
  };

  // Gives a chat its prompt.
  Result<std::vector<Tokens>> prompts_of(CompletionRequest& request) const {
    TRY(check_model(api_, request.model));
    if (request.conversation) TRY(add_chat_prompt(api_, now_, request));
    std::vector<Tokens> prompts;
    for (const CompletionRequest::Prompt& prompt : request.prompts) {
      prompts.push_back(tokens_of(api_, prompt));
      TRY(engine_.check_prompt(prompts.back()));
    }
    return prompts;
  }

  SequenceReceiver receiver_of(Row& row, std::size_t i) {
    SequenceReceiver receiver;
    receiver.token = [&row, i](std::int32_t token) {
      row.usage.completion_tokens += row.request.max_tokens > 0 ? 1 : 0;
      row.choices[i].take(token);
      return !row.choices[i].has_ended();
    };
    receiver.end = [this, &row, i](SequenceEnd why) {
      row.choices[i].end(why);
      if (--row.open == 0) finish(row);
    };
    receiver.logprobs = [&row, i](const TokenLogprobs& logprobs) { row.choices[i].note(logprobs); };
    return receiver;
  }

  void finish(Row& row) {
    std::vector<Node> choices;
    for (AnswerChoice& choice : row.choices) choices.push_back(choice.part());
    const CompletionHead head{fmt::format("{}-{}", row.request.conversation ? "chatcmpl" : "cmpl", row.about.index),
                              now_, api_.model};
    Node node = answer_node(row.request, head, std::move(choices));
    node.set("usage", to_node(row.usage));
    ended_.push_back({.row = row.about.index,
                      .prompt_tokens = row.usage.prompt_tokens,
                      .answer_tokens = row.usage.completion_tokens,
                      .line = answer_line(row.about, to_json(node))});
    over_.push_back(row.about.index);
  }

  const ServedApi& api_;
  Engine& engine_;
  const std::int64_t now_;
  CompletionForms forms_;
  ServingLoop loop_;
  std::map<std::size_t, std::unique_ptr<Row>> rows_;  // that have begun, by index
  std::vector<std::size_t> over_;                     // of them, those that have ended in this step
  std::uint64_t next_id_ = 0;
};

}  // namespace

std::unique_ptr<BatchWork> make_completion_work(const ServedApi& api, Engine& engine, std::int64_t now) {
  return std::make_unique<CompletionWork>(api, engine, now);
}

}  // namespace systole

#include "execute/serve/completion_job.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "execute/serve/answer_text.h"
#include "ground/base/philox.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

std::string event(const Node& node) { return fmt::format("data: {}\n\n", to_json(node)); }

std::string_view bytes_or_none(const Tokenizer& tokenizer, std::int32_t token) {
  return token < tokenizer.vocabulary() ? tokenizer.bytes_of(token) : std::string_view();
}

// A token as an entry of logprobs: its text; for bytes that are no text "bytes:\xE2\x82", as OpenAI writes them; for a
// token that spells nothing "token_id:2", as vLLM does.
std::string spelled(const Tokenizer& tokenizer, std::int32_t token) {
  const std::string_view bytes = bytes_or_none(tokenizer, token);
  if (bytes.empty()) return fmt::format("token_id:{}", token);
  if (!find_invalid_utf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) text += fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
  return text;
}

// One request for completions on its way. But for the constructor, begin() and drop(), everything runs on the engine's
// thread.
class CompletionJob : public std::enable_shared_from_this<CompletionJob> {
 public:
  CompletionJob(const ServedApi& api, ServingThread& serving, CompletionRequest request, CompletionHead head,
                CompletionForm form, HttpResponder responder)
      : api_(api),
        serving_(serving),
        request_(std::move(request)),
        head_(std::move(head)),
        form_(std::move(form)),
        responder_(std::move(responder)) {}

  // Errors: those of ServingThread::check_prompt; invalid (more answers than may wait and run at once). Then nothing
  // was answered.
  Status begin(const std::string& key) {
    const std::int64_t answers = static_cast<std::int64_t>(request_.prompts.size()) * request_.n;
    if (answers > serving_.most())
      return key_error(ErrorKind::invalid, "n", "{} prompts with {} answers each; this server takes {} at once",
                       request_.prompts.size(), request_.n, serving_.most());
    std::vector<std::vector<std::int32_t>> prompts;
    for (const CompletionRequest::Prompt& prompt : request_.prompts) {
      prompts.push_back(std::holds_alternative<std::string>(prompt) ? api_.tokens_of(std::get<std::string>(prompt))
                                                                    : std::get<std::vector<std::int32_t>>(prompt));
      TRY(serving_.check_prompt(prompts.back()));
      usage_.prompt_tokens += static_cast<std::int64_t>(prompts.back().size());
      for (std::int64_t i = 0; i < request_.n; ++i) choices_.push_back(choice_of(prompt, prompts.back()));
    }
    open_ = choices_.size();
    SequenceRequest sequence = common_sequence(key);
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      sequence.prompt = prompts[i / static_cast<std::size_t>(request_.n)];
      sequence.draw = i;
      const auto job = shared_from_this();
      const std::uint64_t id = serving_.submit(
          sequence,
          {[job, i](std::int32_t token) { return job->take(i, token); },
           [job, i](SequenceEnd end) { job->end(i, end); }, [job](const Error& error) { job->refuse(error); },
           [job, i](const TokenLogprobs& logprobs) { job->note(i, logprobs); }, [job, i] { return job->is_whole(i); }});
      if (!keep(id)) break;
    }
    responder_.when_gone([weak = weak_from_this()] {
      if (const auto job = weak.lock()) job->drop();
    });
    return {};
  }

 private:
  struct Choice {
    AnswerText answer;
    ToolCallText divided;
    std::string text = {};             // not sent yet, and is no call
    std::vector<ToolCall> calls = {};  // once it has ended
    std::optional<SequenceEnd> end = {};
    std::vector<CompletionToken> tokens = {};  // with their logprobs, if asked for; not sent yet
    bool has_role = false;                     // a chat's stream has said whose answer it is
  };

  Choice choice_of(const CompletionRequest::Prompt& prompt, const std::vector<std::int32_t>& tokens) const {
    const bool skips = api_.answers && api_.tokenizer.begins_with_space();
    Choice choice{AnswerText(api_.tokenizer, request_.stop, skips, request_.min_tokens, form_.spelled),
                  ToolCallText(form_.tools, request_.tools)};
    if (request_.echo) choice.text = echo_of(prompt, tokens);
    return choice;
  }

  // What the sequences of all choices have in common.
  SequenceRequest common_sequence(const std::string& key) const {
    SequenceRequest sequence{.key = key,
                             .prompt = {},
                             .sampling = request_.sampling,
                             .max_tokens = request_.max_tokens,
                             .min_tokens = request_.min_tokens,
                             .stop = request_.stop_tokens,
                             .logprobs = request_.logprobs,
                             .grammar = form_.grammar};
    if (!request_.ignore_eos) sequence.stop.push_back(api_.tokenizer.eos());
    sequence.sampling.never = api_.never;
    if (request_.conversation) {
      sequence.stop.insert(sequence.stop.end(), api_.ends.begin(), api_.ends.end());
      std::erase_if(sequence.sampling.never, [&](std::int32_t token) { return contains(api_.ends, token); });
    }
    for (const SpecialToken& special : form_.spelled) std::erase(sequence.sampling.never, special.token);
    return sequence;
  }

  // False: nobody wants the sequence any more.
  bool keep(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
    if (dropped_) serving_.cancel(id);
    return !dropped_;
  }

  // Cancels all sequences, so that none that waits is begun for nobody.
  void drop() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(dropped_, true)) return;
    for (const std::uint64_t id : ids_) serving_.cancel(id);
  }

  static bool contains(const std::vector<std::int32_t>& tokens, std::int32_t token) {
    return std::ranges::find(tokens, token) != tokens.end();
  }

  std::string echo_of(const CompletionRequest::Prompt& prompt, const std::vector<std::int32_t>& tokens) const {
    if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
    for (const std::int32_t token : tokens) {
      if (token >= api_.tokenizer.vocabulary()) return {};  // the engine refuses it
    }
    Result<std::string> text = api_.tokenizer.decode(tokens);
    return text.ok() ? std::move(*text) : std::string();
  }

  // Before take() of the same token.
  void note(std::size_t index, const TokenLogprobs& logprobs) {
    Choice& choice = choices_[index];
    CompletionToken& token = choice.tokens.emplace_back();
    token.text = spelled(api_.tokenizer, logprobs.chosen.token);
    token.logprob = logprobs.chosen.logprob;
    token.offset = choice.answer.characters();
    token.bytes = bytes_or_none(api_.tokenizer, logprobs.chosen.token);
    for (const TokenLogprob& each : logprobs.likeliest) {
      token.likeliest.emplace_back(spelled(api_.tokenizer, each.token), each.logprob);
      token.likeliest_bytes.emplace_back(bytes_or_none(api_.tokenizer, each.token));
    }
  }

  bool take(std::size_t index, std::int32_t token) {
    if (over_) return false;
    Choice& choice = choices_[index];
    ++usage_.completion_tokens;
    choice.text += choice.divided.add(choice.answer.add(token));
    if (choice.answer.stopped()) choice.end = SequenceEnd::stop;
    if (request_.stream && !choice.text.empty() && !choice.end) send(index);
    return !over_ && !choice.end && !responder_.is_gone();
  }

  bool is_whole(std::size_t index) const { return !over_ && choices_[index].end.has_value(); }

  void end(std::size_t index, SequenceEnd why) {
    if (over_) return;
    Choice& choice = choices_[index];
    choice.text += choice.divided.add(choice.answer.rest());
    if (!choice.end) choice.end = why;
    ToolCallText::Rest rest = choice.divided.rest();
    choice.text += rest.text;
    choice.calls = std::move(rest.calls);
    for (std::size_t i = 0; i < choice.calls.size(); ++i) choice.calls[i].id = call_id(index, i);
    if (request_.stream) send(index);
    if (--open_ == 0 && !over_) finish();
  }

  // Nine letters and digits, as templates of Mistral's models need.
  std::string call_id(std::size_t choice, std::size_t call) const {
    static constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const PhiloxBlock bits = philox(form_.call_ids, philox_counter(call, choice));
    std::uint64_t left = std::uint64_t{bits[0]} << 32 | bits[1];
    std::string id = form_.tools == ToolFormat::mistral ? "" : "call_";
    for (int i = 0; i < 9; ++i, left /= kLetters.size()) id += kLetters[left % kLetters.size()];
    return id;
  }

  void refuse(const Error& error) {
    if (over_) return;
    over_ = true;
    drop();
    if (!begun_) return responder_.send(refusal(error));
    if (write(event(error_node(error)))) responder_.end();
  }

  // What the choice has that is not sent yet, and its end if it has ended.
  Node part(std::size_t index) {
    Choice& choice = choices_[index];
    const auto number = static_cast<std::int64_t>(index);
    Node logprobs = !request_.logprobs      ? Node()
                    : request_.conversation ? chat_logprobs(choice.tokens)
                                            : completion_logprobs(choice.tokens);
    choice.tokens.clear();
    std::string text = std::exchange(choice.text, {});
    if (!request_.conversation) return completion_choice(number, std::move(text), choice.end, std::move(logprobs));
    Node node = request_.stream ? chat_piece(number, std::move(text), choice.end, choice.calls)
                                : chat_choice(number, std::move(text), choice.end, choice.calls);
    return node.set("logprobs", std::move(logprobs));
  }

  void send(std::size_t index) {
    if (request_.conversation && !std::exchange(choices_[index].has_role, true))
      send_choice(chat_piece(static_cast<std::int64_t>(index), {}, {}));
    send_choice(part(index));
  }
  void send_choice(Node choice) {
    Node node = whole({std::move(choice)});
    if (request_.with_usage) node.set("usage", Node());
    write(event(node));
  }

  Node whole(std::vector<Node> choices) const {
    return request_.conversation ? chat_completion(head_, std::move(choices), request_.stream)
                                 : completion(head_, std::move(choices));
  }

  // False: the client is gone, or too slow. Then the stream is cut, so that nobody takes it for whole.
  bool write(const std::string& piece) {
    if (!begun_) {
      begun_ = true;
      responder_.begin({.type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}}});
    }
    if (responder_.write(piece) == StreamWrite::taken) return true;
    over_ = true;
    drop();
    return false;
  }

  void finish() {
    over_ = true;
    if (request_.stream) {
      if (request_.with_usage) {
        Node node = whole({});
        if (!write(event(node.set("usage", to_node(usage_))))) return;
      }
      if (write("data: [DONE]\n\n")) responder_.end();
      return;
    }
    std::vector<Node> choices;
    for (std::size_t i = 0; i < choices_.size(); ++i) choices.push_back(part(i));
    Node node = whole(std::move(choices));
    responder_.send({.body = to_json(node.set("usage", to_node(usage_)))});
  }

  const ServedApi& api_;
  ServingThread& serving_;
  const CompletionRequest request_;
  const CompletionHead head_;
  const CompletionForm form_;
  HttpResponder responder_;
  std::vector<Choice> choices_;
  Usage usage_;
  std::size_t open_ = 0;  // choices that have not ended
  bool begun_ = false, over_ = false;

  std::mutex mutex_;
  std::vector<std::uint64_t> ids_;  // guarded by mutex_, as the next
  bool dropped_ = false;
};

}  // namespace

Status answer_completion(const ServedApi& api, ServingThread& serving, CompletionRequest request, CompletionHead head,
                         CompletionForm form, const std::string& key, HttpResponder responder) {
  return std::make_shared<CompletionJob>(api, serving, std::move(request), std::move(head), std::move(form),
                                         std::move(responder))
      ->begin(key);
}

}  // namespace systole

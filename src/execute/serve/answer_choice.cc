#include "execute/serve/answer_choice.h"

#include <algorithm>
#include <utility>

#include "ground/base/philox.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

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

bool contains(const std::vector<std::int32_t>& tokens, std::int32_t token) {
  return std::ranges::find(tokens, token) != tokens.end();
}

std::string echo_of(const ServedApi& api, const CompletionRequest::Prompt& prompt,
                    const std::vector<std::int32_t>& tokens) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  for (const std::int32_t token : tokens) {
    if (token >= api.tokenizer.vocabulary()) return {};  // the engine refuses it
  }
  Result<std::string> text = api.tokenizer.decode(tokens);
  return text.ok() ? std::move(*text) : std::string();
}

}  // namespace

SequenceRequest common_sequence(const ServedApi& api, const CompletionRequest& request, const CompletionForm& form,
                                const std::string& key) {
  SequenceRequest sequence{.key = key,
                           .prompt = {},
                           .sampling = request.sampling,
                           .max_tokens = request.max_tokens,
                           .min_tokens = request.min_tokens,
                           .stop = request.stop_tokens,
                           .logprobs = request.logprobs,
                           .grammar = form.grammar};
  if (!request.ignore_eos) sequence.stop.push_back(api.tokenizer.eos());
  sequence.sampling.never = api.never;
  if (request.conversation) {
    sequence.stop.insert(sequence.stop.end(), api.ends.begin(), api.ends.end());
    std::erase_if(sequence.sampling.never, [&](std::int32_t token) { return contains(api.ends, token); });
  }
  sequence.adapter = adapter_of(api, request.model);
  for (const SpecialToken& special : form.spelled) std::erase(sequence.sampling.never, special.token);
  return sequence;
}

AnswerChoice::AnswerChoice(const ServedApi& api, const CompletionRequest& request, const CompletionForm& form,
                           std::size_t index, const CompletionRequest::Prompt& prompt,
                           const std::vector<std::int32_t>& tokens)
    : api_(api),
      request_(request),
      form_(form),
      index_(index),
      answer_(api.tokenizer, request.stop, api.answers && api.tokenizer.begins_with_space(), request.min_tokens,
              form.spelled),
      divided_(form.tools, request.tools) {
  if (request.echo) text_ = echo_of(api, prompt, tokens);
}

void AnswerChoice::note(const TokenLogprobs& logprobs) {
  CompletionToken& token = tokens_.emplace_back();
  token.text = spelled(api_.tokenizer, logprobs.chosen.token);
  token.logprob = logprobs.chosen.logprob;
  token.offset = answer_.characters();
  token.bytes = bytes_or_none(api_.tokenizer, logprobs.chosen.token);
  for (const TokenLogprob& each : logprobs.likeliest) {
    token.likeliest.emplace_back(spelled(api_.tokenizer, each.token), each.logprob);
    token.likeliest_bytes.emplace_back(bytes_or_none(api_.tokenizer, each.token));
  }
}

void AnswerChoice::take(std::int32_t token) {
  text_ += divided_.add(answer_.add(token));
  if (answer_.stopped()) end_ = SequenceEnd::stop;
}

void AnswerChoice::end(SequenceEnd why) {
  text_ += divided_.add(answer_.rest());
  if (!end_) end_ = why;
  ToolCallText::Rest rest = divided_.rest();
  text_ += rest.text;
  calls_ = std::move(rest.calls);
  for (std::size_t i = 0; i < calls_.size(); ++i) calls_[i].id = call_id(i);
}

// Nine letters and digits, as templates of Mistral's models need.
std::string AnswerChoice::call_id(std::size_t call) const {
  static constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const PhiloxBlock bits = philox(form_.call_ids, philox_counter(call, index_));
  std::uint64_t left = std::uint64_t{bits[0]} << 32 | bits[1];
  std::string id = form_.tools == ToolFormat::mistral ? "" : "call_";
  for (int i = 0; i < 9; ++i, left /= kLetters.size()) id += kLetters[left % kLetters.size()];
  return id;
}

Node AnswerChoice::part() {
  const auto number = static_cast<std::int64_t>(index_);
  Node logprobs = !request_.logprobs      ? Node()
                  : request_.conversation ? chat_logprobs(tokens_)
                                          : completion_logprobs(tokens_);
  tokens_.clear();
  std::string text = std::exchange(text_, {});
  if (!request_.conversation) return completion_choice(number, std::move(text), end_, std::move(logprobs));
  Node node = request_.stream ? chat_piece(number, std::move(text), end_, calls_)
                              : chat_choice(number, std::move(text), end_, calls_);
  return node.set("logprobs", std::move(logprobs));
}

Node answer_node(const CompletionRequest& request, const CompletionHead& head, std::vector<Node> choices) {
  return request.conversation ? chat_completion(head, std::move(choices), request.stream)
                              : completion(head, std::move(choices));
}

}  // namespace systole

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

std::int64_t characters_of(std::string_view text) {
  return std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
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
                           .max_tokens = std::max<std::int64_t>(request.max_tokens, 1),
                           .min_tokens = request.min_tokens,
                           .stop = request.stop_tokens,
                           .logprobs = request.logprobs,
                           .prompt_logprobs = request.echo && request.logprobs,
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
  if (!request.echo) return;
  text_ = echo_of(api, prompt, tokens);
  echoed_ = characters_of(text_);
  if (request.logprobs && !tokens.empty()) begin_echo(tokens);
}

// A tokenizer may put a space before a text, which the echo does not have.
void AnswerChoice::begin_echo(const std::vector<std::int32_t>& tokens) {
  std::int64_t all = 0;
  for (const std::int32_t token : tokens) {
    offsets_.push_back(all);
    all += characters_of(bytes_or_none(api_.tokenizer, token));
  }
  for (std::int64_t& offset : offsets_) offset = std::max<std::int64_t>(offset + echoed_ - all, 0);
  std::ranges::reverse(offsets_);
  tokens_.push_back({.text = spelled(api_.tokenizer, tokens[0]), .logprob = {}, .offset = offsets_.back()});
  offsets_.pop_back();
}

void AnswerChoice::note(const TokenLogprobs& logprobs) {
  if (offsets_.empty() && request_.max_tokens == 0) return;
  CompletionToken& token = tokens_.emplace_back();
  token.text = spelled(api_.tokenizer, logprobs.chosen.token);
  token.logprob = logprobs.chosen.logprob;
  token.offset = offsets_.empty() ? echoed_ + answer_.characters() : offsets_.back();
  if (!offsets_.empty()) offsets_.pop_back();
  token.bytes = bytes_or_none(api_.tokenizer, logprobs.chosen.token);
  for (const TokenLogprob& each : logprobs.likeliest) {
    token.likeliest.emplace_back(spelled(api_.tokenizer, each.token), each.logprob);
    token.likeliest_bytes.emplace_back(bytes_or_none(api_.tokenizer, each.token));
  }
}

void AnswerChoice::take(std::int32_t token) {
  if (request_.max_tokens == 0) return;
  text_ += divided_.add(answer_.add(token));
  if (answer_.stopped()) end_ = SequenceEnd::stop;
}

void AnswerChoice::end(SequenceEnd why) {
  text_ += divided_.add(answer_.rest());
  if (!end_) end_ = request_.max_tokens == 0 ? SequenceEnd::max_tokens : why;
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

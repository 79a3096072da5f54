#pragma once
// Requests of OpenAI's HTTP interface for completions and chat, from JSON; without a server.
// Sources: https://platform.openai.com/docs/api-reference/completions and …/chat (2026-11). Of vLLM's additions: top_k,
// min_p, repetition_penalty, min_tokens, ignore_eos, stop_token_ids, structured_outputs.
//
// A field that changes the answer and is not supported is refused by name, unless it has the value that changes nothing;
// so is a field that the interface does not have. Errors name the field as their key.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/answer_form.h"
#include "execute/serve/chat/chat_prompt.h"
#include "execute/serve/request_fields.h"
#include "execute/serve/sampling.h"
#include "execute/serve/tool_calls.h"

namespace systole {

struct CompletionRequest {
  using Prompt = TextOrTokens;
  std::string model;
  std::vector<Prompt> prompts;
  std::int64_t n = 1;                       // answers per prompt
  std::int64_t max_tokens = 16;             // 0: the echo alone
  SamplingOptions sampling;                 // seed: `seed`
  bool seeded = false;                      // otherwise the seed is the server's choice
  std::vector<std::string> stop;            // at most 4, of at most 1,024 bytes
  bool stream = false, with_usage = false;  // stream_options.include_usage
  bool usage_in_pieces = false;             // vLLM's stream_options.continuous_usage_stats
  bool echo = false;                        // the prompt's text comes first
  std::int64_t min_tokens = 0;              // nothing ends the answer before it has these
  bool ignore_eos = false;                  // the model's end of a text does not end the answer
  std::vector<std::int32_t> stop_tokens;    // end the answer as well; not part of it
  std::optional<std::int64_t> logprobs;     // of each token, an echoed prompt's too, and of so many likeliest
  AnswerForm form;
  ToolUse tools;                                   // of a request for chat
  std::optional<chat::Conversation> conversation;  // of a request for chat, which has no prompts
};

// The most prompts times answers of one request.
constexpr std::int64_t kMostChoices = 128;

// Errors: invalid (not JSON, a wrong type or range, an unknown field), unsupported (a field).
Result<CompletionRequest> parse_completion(std::string_view body);
Result<CompletionRequest> read_completion(const Node& body);

// Of /v1/chat/completions. Each message's content becomes one text: parts are joined by a newline, as vLLM does; the
// arguments of tool calls become maps. Errors: as parse_completion.
Result<CompletionRequest> parse_chat(std::string_view body);
Result<CompletionRequest> read_chat(const Node& body);

}  // namespace systole

#pragma once
// Answers of OpenAI's HTTP interface for completions and chat, and its errors, as JSON; without a server. Sources: as of
// openai_requests.h.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "execute/serve/serving_loop.h"
#include "execute/serve/tool_calls.h"
#include "ground/base/document.h"

namespace systole {

struct Usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
};
Node to_node(const Usage& usage);

// What all answers to one request have in common.
struct CompletionHead {
  std::string id;            // "cmpl-…"
  std::int64_t created = 0;  // Unix time, seconds
  std::string model;
};
// A token of an answer, as `logprobs` has it.
struct CompletionToken {
  std::string text;
  std::optional<double> logprob = 0.0;                    // natural; nothing: of the first token of a prompt
  std::vector<std::pair<std::string, double>> likeliest;  // descending
  std::int64_t offset = 0;                                // of its text in the answer's, in characters
  std::string bytes = {};                                 // that it spells; empty: it spells nothing
  std::vector<std::string> likeliest_bytes = {};          // of each of `likeliest`
};
// "tokens", "token_logprobs", "top_logprobs" and "text_offset". The top ones have the token itself, too. -inf, which
// JSON cannot write, is -9999, as vLLM has it; without a logprob both are null.
Node completion_logprobs(std::span<const CompletionToken> tokens);
// Of chat: {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}.
Node chat_logprobs(std::span<const CompletionToken> tokens);
// `end`: nothing while the choice goes on.
Node completion_choice(std::int64_t index, std::string text, std::optional<SequenceEnd> end, Node logprobs = {});
Node completion(const CompletionHead& head, std::vector<Node> choices);

// The same for chat. A stream's first piece of a choice says its role, the others have text. Calls come with the end.
Node chat_choice(std::int64_t index, std::string text, std::optional<SequenceEnd> end,
                 std::span<const ToolCall> calls = {});
Node chat_piece(std::int64_t index, std::optional<std::string> text, std::optional<SequenceEnd> end,
                std::span<const ToolCall> calls = {});
Node chat_completion(const CompletionHead& head, std::vector<Node> choices, bool stream);

// {"error": {"message", "type", "param", "code"}}, and its HTTP status.
Node error_node(const Error& error);
int http_status(const Error& error);

}  // namespace systole

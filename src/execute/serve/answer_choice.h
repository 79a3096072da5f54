#pragma once
// One answer to a request for completions or chat as its tokens come: its text up to a stop string, its calls of tools,
// the log probabilities of its tokens; and the sequence that an engine computes for it.
//
//   AnswerChoice choice(api, request, form, 0, prompt, tokens);
//   choice.take(token); if (choice.has_ended()) ...           // per token; note() before, if logprobs are asked for, and
//                                                             // first of an echoed prompt's tokens from its second on
//   choice.end(SequenceEnd::max_tokens);
//   Node node = choice.part();                                // as the interface has it

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/serve/answer_text.h"
#include "execute/serve/completion_form.h"
#include "execute/serve/openai_answers.h"

namespace systole {

// What the sequences of all answers to a request have in common; without prompt and draw.
SequenceRequest common_sequence(const ServedApi& api, const CompletionRequest& request, const CompletionForm& form,
                                const std::string& key);

// Borrows all that it is made of.
class AnswerChoice {
 public:
  // `tokens`: of the prompt.
  AnswerChoice(const ServedApi& api, const CompletionRequest& request, const CompletionForm& form, std::size_t index,
               const CompletionRequest::Prompt& prompt, const std::vector<std::int32_t>& tokens);

  void note(const TokenLogprobs& logprobs);
  void take(std::int32_t token);
  void end(SequenceEnd why);  // no token follows
  bool has_ended() const { return end_.has_value(); }
  bool has_text() const { return !text_.empty(); }
  // What it has and has not handed out yet, and its end if it has ended: a whole choice, or a stream's piece.
  Node part();

 private:
  std::string call_id(std::size_t call) const;
  void begin_echo(const std::vector<std::int32_t>& tokens);

  const ServedApi& api_;
  const CompletionRequest& request_;
  const CompletionForm& form_;
  std::size_t index_;
  AnswerText answer_;
  ToolCallText divided_;
  std::string text_;             // not handed out yet, and is no call
  std::vector<ToolCall> calls_;  // once it has ended
  std::optional<SequenceEnd> end_;
  std::vector<CompletionToken> tokens_;  // with their logprobs, if asked for; not handed out yet
  std::int64_t echoed_ = 0;              // characters of the echo
  std::vector<std::int64_t> offsets_;    // in it, of the prompt's tokens that are still to be noted; the last first
};

// An answer to the request with these choices, without its usage.
Node answer_node(const CompletionRequest& request, const CompletionHead& head, std::vector<Node> choices);

}  // namespace systole

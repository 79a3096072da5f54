#pragma once
// What a request for completions or chat needs before its sequences begin: its prompts as tokens, and what its answers
// may be.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "execute/serve/api_routes.h"
#include "execute/serve/openai_requests.h"

namespace systole {

// Errors: not_found (model_not_found): neither the served model nor one of its adapters.
Status check_model(const ServedApi& api, const std::string& asked);
// The adapter of that name, as Engine::set_adapter has it; 0: it is none.
std::int64_t adapter_of(const ServedApi& api, const std::string& model);

// The tokens of a prompt, or of a text.
std::vector<std::int32_t> tokens_of(const ServedApi& api, const CompletionRequest::Prompt& prompt);

// Gives a request for chat its prompt: the conversation by the model's template. `unix_seconds`: now, for the template.
// Errors: unsupported (the model has no template); those of the template.
Status add_chat_prompt(const ServedApi& api, std::int64_t unix_seconds, CompletionRequest& request);

// What the answers may be, beside what the request says.
struct CompletionForm {
  std::shared_ptr<grammar::TokenMasks> grammar = {};
  ToolFormat tools = ToolFormat::none;     // of calls in an answer
  std::vector<SpecialToken> spelled = {};  // tokens that stand for their names
  std::uint64_t call_ids = 0;              // random bits
};

// Makes the forms of one model's answers; grammars are kept. The api must outlive it. One thread at a time.
class CompletionForms {
 public:
  explicit CompletionForms(const ServedApi& api);
  // Without call_ids. Errors: those of the form's grammar.
  Result<CompletionForm> form_of(const CompletionRequest& asked);

 private:
  const ServedApi& api_;
  ToolFormat tools_ = ToolFormat::none;     // of the model's calls
  std::vector<SpecialToken> marks_;         // around them
  std::optional<AnswerGrammars> grammars_;  // once a request has asked for a form
};

}  // namespace systole

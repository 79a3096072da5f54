#pragma once
// Answers a request for completions or for chat: /v1/completions and /v1/chat/completions of api_routes.h.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "execute/serve/api_routes.h"
#include "execute/serve/openai_answers.h"
#include "execute/serve/openai_requests.h"

namespace systole {

// What the answers may be, beside what the request says.
struct CompletionForm {
  std::shared_ptr<grammar::TokenMasks> grammar = {};
  ToolFormat tools = ToolFormat::none;     // of calls in an answer
  std::vector<SpecialToken> spelled = {};  // tokens that stand for their names
  std::uint64_t call_ids = 0;              // random bits
};

// Submits its sequences; each new token goes to the client from the engine's thread. `key`: see scheduler.h.
// Errors, with which nothing was answered: those of ServingThread::check_prompt; invalid (more answers than may wait and
// run at once).
Status answer_completion(const ServedApi& api, ServingThread& serving, CompletionRequest request, CompletionHead head,
                         CompletionForm form, const std::string& key, HttpResponder responder);

}  // namespace systole

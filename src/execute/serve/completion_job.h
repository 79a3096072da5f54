#pragma once
// Answers a request for completions or for chat: /v1/completions and /v1/chat/completions of api_routes.h.

#include <string>

#include "execute/serve/completion_form.h"
#include "execute/serve/openai_answers.h"

namespace systole {

// Submits its sequences; each new token goes to the client from the engine's thread. `key`: see scheduler.h.
// Errors, with which nothing was answered: those of ServingThread::check_prompt; invalid (more answers than may wait and
// run at once).
Status answer_completion(const ServedApi& api, ServingThread& serving, CompletionRequest request, CompletionHead head,
                         CompletionForm form, const std::string& key, HttpResponder responder);

}  // namespace systole

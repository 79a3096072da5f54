#pragma once
// Answers a request for embeddings: /v1/embeddings of api_routes.h.

#include <functional>
#include <memory>

#include "execute/serve/api_routes.h"
#include "execute/serve/openai_embeddings.h"

namespace systole {

// `later` runs a task on another thread than the engine's; where it cannot any more, the client gets status 500.
// Errors, with which nothing was answered: unsupported (the model is served without vectors); invalid (`dimensions`, a
// text that does not fit).
Status answer_embeddings(const ServedApi& api, ServingThread& serving, EmbeddingsRequest request,
                         const HttpResponder& responder, std::function<void(std::function<void()>)> later);

}  // namespace systole

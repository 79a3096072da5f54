#pragma once
// Answers a request for embeddings: /v1/embeddings of api_routes.h.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "execute/serve/api_routes.h"
#include "execute/serve/openai_embeddings.h"

namespace systole {

// As Engine::check_prompt.
using CheckPrompt = std::function<Status(std::span<const std::int32_t> tokens)>;
// Errors: unsupported (the model is served without vectors); invalid, naming the field: `dimensions`, a text that
// `check` refuses.
Result<std::vector<std::vector<std::int32_t>>> tokens_of_inputs(const ServedApi& api, const EmbeddingsRequest& request,
                                                                const CheckPrompt& check);
// To the request's `dimensions`, if it has any.
void shorten_all(const EmbeddingsRequest& request, const PoolingSpec& pooling,
                 std::vector<std::vector<float>>& vectors);

// `later` runs a task on another thread than the engine's; where it cannot any more, the client gets status 500.
// Errors, with which nothing was answered: those of tokens_of_inputs.
Status answer_embeddings(const ServedApi& api, ServingThread& serving, EmbeddingsRequest request,
                         const HttpResponder& responder, std::function<void(std::function<void()>)> later);

}  // namespace systole

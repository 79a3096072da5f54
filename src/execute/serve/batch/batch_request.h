#pragma once
// The request of a batch's row.

#include <optional>
#include <string>
#include <variant>

#include "execute/serve/batch/batch_job.h"
#include "execute/serve/batch/score_request.h"
#include "execute/serve/openai_embeddings.h"
#include "execute/serve/openai_requests.h"

namespace systole {

struct BatchRequest {
  std::variant<CompletionRequest, EmbeddingsRequest, ScoreRequest> asked;
  bool seeded = false;  // by the row itself
};

// The row's own name; nothing: it has none, or an empty one.
std::optional<std::string> custom_id_of(const Node& row);

// Of a row by the job's prompt; without one, of a row in OpenAI's batch format:
//   {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "…", "max_tokens": 9}}
// Fields that the row does not have are the job's; the model is the job's unless the row names one.
// Errors: as of the requests themselves; invalid: the row is in no such format, or for another route; unsupported:
// stream.
Result<BatchRequest> request_of(const BatchJob& job, const Node& row);

}  // namespace systole

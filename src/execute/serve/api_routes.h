#pragma once
// The routes of a served model: OpenAI's /v1/models, /v1/completions and /v1/chat/completions (whole or as server-sent
// events), /v1/embeddings, /tokenize and /detokenize as vLLM has them, /health/live, /health/ready and /metrics.
//
// What requests ask is read and encoded on a thread of the routes' own, in turn, so that a large one does not hold up
// the connections. A request's tokens go to the engine; each new token is sent as soon as its text is certain. If a
// client leaves, or reads a stream too slowly for its buffer, its sequences end with the next step.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/data/tokenizer.h"
#include "execute/serve/chat/chat_prompt.h"
#include "execute/serve/serving_thread.h"
#include "ground/base/clock.h"
#include "ground/net/http_server.h"

namespace systole {

// How texts become vectors. `tokens_of` is called on the routes' own thread alone, as that of ServedApi.
struct ServedVectors {
  std::function<std::vector<std::int32_t>(const std::string& text)> tokens_of;
  PoolingSpec pooling = {};
  std::int64_t size = 0;  // numbers of a vector
};

struct ServedApi {
  std::string model;  // its name in requests
  Tokenizer tokenizer;
  std::function<std::vector<std::int32_t>(const std::string& text)> tokens_of;  // a prompt as the model was trained
  std::vector<std::int32_t> never;                                              // tokens that are never drawn
  bool answers = false;                       // encoder-decoder: it answers a prompt; otherwise it continues it
  std::int64_t context = 0;                   // tokens of a sequence
  std::optional<chat::ChatPrompt> chat = {};  // nothing: the model has no chat template
  std::vector<std::int32_t> ends = {};        // tokens that end an answer of a chat, beside eos
  std::optional<ServedVectors> vectors = {};  // nothing: requests for embeddings are refused
  bool generates = true;                      // otherwise only vectors are served
  // The header, in lower case, in which a balancer says whose request it is, so that clients take turns; empty: the token
  // or the address says it.
  std::string key_header = {};
  bool logs_prompts = false;                  // the record of a request (http_record.h) has its prompts
  std::function<std::string()> metrics = {};  // more of /metrics
  std::vector<std::string> adapters = {};     // the names of the engine's, in its order: requests name them as models
};

// The served model and the thread must outlive the server; answers may outlive both.
std::vector<HttpRoute> api_routes(const ServedApi& api, ServingThread& serving, Clock& clock);

// Whose request it is: the token, however "Bearer" is written before it, or the address.
std::string client_of(const HttpServerRequest& request);

// The answer to a request that is refused.
HttpResponse refusal(const Error& error);

// Prometheus text; where a metric means the same as one of vLLM's, it has that name.
std::string metrics_text(const ServingCounts& counts, const std::string& model);

}  // namespace systole

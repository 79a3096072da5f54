#pragma once
// Serves a model from this process: opens it, and answers requests as OpenAI's interface has them until a signal.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/start_phases.h"
#include "ground/net/http_server.h"
#include "operate/run/access_records.h"
#include "operate/run/checkpoint_follower.h"
#include "operate/run/run_messages.h"
#include "operate/run/serving_ranks.h"
#include "operate/run/weights_option.h"

namespace systole {

// As the options of `systole serve` have them; "" and 0 where one is not given.
struct ServeOptions {
  std::string run, name, backend = "cpu", listen = "127.0.0.1", token_file, certificate, key, chat_template, pooling;
  std::string speculate, follow, tpot, cache_type = "f32";
  std::vector<std::string> lora;  // NAME=PATH
  bool unnormalized = false;
  int port = 8000;
  std::int64_t slots = 4, context = 0, cache_tokens = 0, waiting = 64, prefill_tokens = 0, threads = 0;
  double grace_s = 30, follow_every_s = 5;
  WeightsOption weights;
  AccessLogOption access;
  ServingRanksArguments ranks;
  bool balanced = false;  // it is a replica

  // Which checkpoints come to be served; nothing: --follow is not given.
  std::optional<Followed> followed() const;
  // The server without its routes. Errors: those of reading the token file; invalid: it has no token.
  Result<HttpServerOptions> server() const;
  // What can be said without a model. Errors: invalid: --prefill-tokens or --tpot; unsupported: what ranks cannot do.
  Status check() const;
};

// Where OpenAI's clients find a server: "http://127.0.0.1:8000/v1".
std::string api_url(const NetAddress& address, const HttpServerOptions& server);

// What is served, before the first request.
struct Serving {
  const ServedApi& api;
  const ServedModel& model;
  std::optional<PoolingSpec> pooling;
  MemoryByOwner memory;
  std::string device;
  std::string note;  // of weights and adapters: "; weights in int8: 12 MB"
  Seconds loaded;
  std::optional<Bytes> drafts;  // memory of the model that makes them
};

// Of rank 0. `ready` is called once, when the server listens. Errors: those of finding, opening and serving the model; invalid,
// unsupported: an option that does not fit it, named as it is typed.
Result<ServingCounts> serve_here(
    const ServeOptions& options,
    const std::function<void(const Serving& serving, const std::string& url, const StartPhases& phases)>& ready,
    const RunMessages& messages, Clock& clock);

}  // namespace systole

#pragma once
// `systole serve --replicas N`: the balancer in front of N processes (operate/run/serve_replicas.h).

#include "ground/net/http_server.h"
#include "operate/cli/command.h"
#include "operate/run/checkpoint_follower.h"

namespace systole::cli {

struct BalancedServe {
  std::int64_t replicas = 2, threads = 0;
  std::string backend, run;
  std::vector<std::string> words;  // options of each replica
  std::optional<Followed> follow;  // as these say
  HttpServerOptions server;
  Seconds grace{30.0};
  std::string canary, shadow;  // empty: none
  std::int64_t canary_weight = 0, shadow_weight = 0;
};

// Where OpenAI's clients find a server: "http://127.0.0.1:8000/v1".
std::string api_url(const NetAddress& address, const HttpServerOptions& server);

ExitCode serve_balanced(const BalancedServe& options, Context& context);

}  // namespace systole::cli

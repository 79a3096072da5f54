#pragma once
// `systole serve --replicas N`: the balancer in front of N processes (operate/run/serve_replicas.h).

#include "operate/cli/command.h"
#include "operate/run/serve_here.h"

namespace systole::cli {

struct ServeCommandOptions : ServeOptions {
  std::string canary, shadow;  // empty: none
  std::int64_t replicas = 1, canary_weight = 10, shadow_weight = 100;
  std::function<std::vector<std::string>()> given;  // the options of each replica, as words
};

ExitCode serve_balanced(const ServeCommandOptions& options, Context& context);

}  // namespace systole::cli

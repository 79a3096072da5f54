#pragma once
// Serves a model by several processes behind one address: this process is the balancer (execute/serve/balance), starts
// the replicas, each of which loads the model for itself, and looks after them.
//
// The first replica is started alone: what is wrong with the options is said once, and the others find the model's files
// in the page cache. All serve the checkpoint that the first one found, also those that are started later; once a run that
// goes on has removed it, one that is started again is given up. But if they follow the run, it begins as if it were the
// first, and SIGHUP is passed on to them. One that ends, or answers no question about its health for half a minute, is
// started again (replica_restarts.h). None outlives this process, however it ends.
//
// If they do not follow a run, SIGHUP replaces them one at a time (rolling_restart.h) by new ones, of which the first
// finds the model anew under the name that was asked for and the others serve the same; no request is lost.
//
// A canary and a shadow are one replica more each, with another model under the same name. Neither is the first, and one
// that cannot load its model is given up at once.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "execute/serve/balance/balancer.h"
#include "ground/base/document.h"
#include "operate/run/checkpoint_follower.h"
#include "operate/run/run_messages.h"

namespace systole {

struct ReplicasAsked {
  int replicas = 2;
  std::vector<std::string> argv;        // of one: the program and its options, but for those of its place
  std::string run;                      // as asked for: "RUN", "RUN@STEP", a folder, or "", the newest run
  std::optional<Followed> follow = {};  // as their options say
  HttpServerOptions server;             // of the balancer, without routes
  Seconds grace{30.0};                  // that requests have to end once it is stopped
  std::string canary = {};              // what the canary serves, as `run`; empty: there is none
  int canary_percent = 0;               // of the requests, for it
  std::string shadow = {};              // the same of a shadow
  int shadow_percent = 0;
};

struct ReplicasServed {
  BalancerCounts counts;
  std::int64_t restarts = 0;
};

// Until a signal. `begun` is called when the first replica serves, with the balancer's address and what the replica says
// of itself (`systole serve --json`). Errors: those of HttpServer::start and of the first replica; io: every replica is
// given up.
Result<ReplicasServed> serve_replicas(const ReplicasAsked& asked,
                                      const std::function<void(const NetAddress& address, const Node& first)>& begun,
                                      const RunMessages& messages, Clock& clock);

}  // namespace systole

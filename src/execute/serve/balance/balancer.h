#pragma once
// Several servers with the same model behind one: the routes of the balancer, which passes requests on to the replica
// that ReplicaChoice names and their answers back. A stream of events is passed on as it comes, whole events at a time;
// any other answer when it is complete.
//
//   a replica has no place (429, 503)      the next one is asked; if none has, the client gets that answer
//   it fails before the client has a byte  the request goes to another one, once
//   it fails in the middle of a stream     the stream ends with an error event, and without [DONE]
//   the client leaves                      the connection to the replica is closed, which cancels the request there
//
//   /health/ready  200 while at least one replica is ready
//   /metrics       those of all replicas, with a label `replica`, and the balancer's own
//
// A canary is one replica more, with another model, which gets a share of the completions and vectors. If it is not
// ready, has no place or fails, a stable one answers. A shadow is another one, which is sent a share of the same requests
// besides; nobody gets or waits for its answers (shadow_comparison.h). Neither counts as a replica that is ready, and the
// balancer's metrics compare all three.
//
// The caller starts the replicas, and says where each one is. A replica takes the client's key, by which requests take
// turns, from the header kKeyHeader (ServedApi::key_header).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ground/net/http_server.h"
#include "ground/net/http_upstreams.h"

namespace systole {

struct BalancerCounts {
  std::int64_t requests = 0;  // that were passed on
  std::int64_t retries = 0;   // after a replica had failed
  std::int64_t failed = 0;    // that got no answer of a replica, or a part of one
};

class Balancer {
 public:
  static constexpr const char* kKeyHeader = "x-systole-key";
  static constexpr const char* kModelHeader = "X-Systole-Model";  // of an answer: what `begin` said

  // `upstreams` must outlive the server of the routes. `canary_percent`, `shadow_percent`: of the requests; if they are
  // not 0, the next replicas after number `replicas` - 1 are the canary and the shadow.
  Balancer(int replicas, HttpUpstreams& upstreams, int canary_percent = 0, int shadow_percent = 0);
  std::vector<HttpRoute> routes() const;

  // From any thread:
  // A replica listens there and shows to be asked with this token; requests go to it from now on, and those under way at
  // the one that stood at this place before go on there.
  // `model` goes with each of its answers; printable ASCII, or empty: none does.
  void begin(int replica, const NetAddress& address, const std::string& token, const std::string& model = {});
  // It gets no more requests; those under way go on.
  void retire(int replica);
  // Asks each replica whether it is ready; one that is not, or does not answer, gets no requests until it is. Returns at
  // once.
  void check_health();
  // How many of these questions, the last ones, it has not answered, each within 5 s; 0 if it is retired, or if the last
  // one could not be asked.
  int unanswered(int replica) const;
  // Requests that are still under way at those that stood at this place before.
  int left_open(int replica) const;
  int ready() const;  // without the canary and the shadow
  BalancerCounts counts() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace systole

#pragma once
// The section `serve` of a workload: how a model is served, the traffic that is expected, and the latency that is wanted.

#include <cstdint>
#include <optional>
#include <string>

#include "describe/spec/count_range.h"
#include "ground/base/units.h"
#include "ground/tensor/dtype.h"

namespace systole {

// The distribution of a number of tokens, at least 1.
//   fixed      the mean
//   uniform    1 … 2 × mean - 1
//   lognormal  exp(N(ln mean - sigma²/2, sigma²)), rounded
struct TokenLengths {
  enum class Distribution { fixed, uniform, lognormal };
  std::int64_t mean = 1;
  Distribution distribution = Distribution::fixed;
  double sigma = 0;  // standard deviation of the logarithm; lognormal only
  bool operator==(const TokenLengths&) const = default;
};

// One of rate, users and trace is set.
struct TrafficSpec {
  std::optional<double> rate;           // requests per second, with exponential gaps (open loop)
  std::optional<std::int64_t> users;    // each waits for its answer, then asks again (closed loop)
  std::optional<Seconds> pause;         // of a user between an answer and the next request, exponential; unset: none
  std::string trace;                    // file of recorded requests (predict/serving/arrivals.h)
  TokenLengths prompt, answer;          // not with a trace
  std::int64_t requests = 0, seed = 0;  // that are simulated
};

// How other networks reach servers of Kubernetes, by TLS. An empty host: not at all.
struct IngressSpec {
  std::string host, tls_secret;  // its name, and the Secret with its certificate and key
  std::string controller;        // the class; empty: the cluster's default
  std::string gateway;           // the class of a Gateway, which is made instead of an Ingress; empty: none
};

// A newer model beside the one that is served, for a part of the requests. An empty `from`: none.
struct CanarySpec {
  std::string from;         // as ServeSpec::from
  std::int64_t weight = 0;  // percent of the requests
};

struct ServeSpec {
  std::int64_t slots = 0, waiting = 0;  // as of `systole serve`
  std::optional<std::int64_t> context;  // tokens of one sequence; unset: the model's
  // Of prompts, in a step beside running answers; unset: by time, as ServingLimits::hold.
  std::optional<std::int64_t> prefill_tokens;
  static constexpr bool may_prefill(std::int64_t tokens) {
    return tokens >= 16 && tokens <= 512 && (tokens & (tokens - 1)) == 0;
  }
  DType parameter = DType::f32;
  DType cache = DType::f32;           // of keys and values: f32 or bf16
  std::optional<Seconds> ttft, tpot;  // limits on the 95th percentiles; unset: none
  TrafficSpec traffic;
  // On a cluster.
  std::string from;                    // what is served, as in a pod: the folder of a run or of a model, or a file
  std::optional<CountRange> replicas;  // servers, each on one device; a range is autoscaled. Unset: planned
  std::optional<Seconds> cold_start;   // from the start of a server until it answers; unset: kColdStart
  static constexpr Seconds kColdStart{300.0};
  IngressSpec ingress;
  CanarySpec canary;
};

}  // namespace systole

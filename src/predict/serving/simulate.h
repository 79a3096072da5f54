#pragma once
// Plays a server on one device: the scheduler that `systole serve` runs (describe/serving/scheduler.h), with a fake clock
// that each piece of a prompt and each decode moves by its predicted time, which the scheduler is told as the server's
// is told the measured one. A step is that of ServingLoop::step: pieces of prompts one after the other, the last of a
// prompt giving its first token, then one token of every running sequence. No two prompts begin alike, and no tokens are
// guessed. Requests that arrive during a step join after it. Time of HTTP and the tokenizer, which
// other threads than the device's take, counts as none.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "describe/serving/scheduler.h"
#include "predict/serving/arrivals.h"

namespace systole {

struct ServingTimes {
  using BySize = std::vector<std::pair<std::int64_t, Seconds>>;  // ascending
  BySize prefill;                                                // by tokens of a piece
  BySize decode;                                                 // by sequences, a token of each
  // More for each position that a token sees, of pieces and of decodes; 0: a device computes all positions of a table.
  Seconds prefill_seen = {}, decode_seen = {};
  Seconds draw = {};  // of a token from its logits
  // A prompt's tokens after the first `start`, in the longest pieces and a last one.
  Seconds prefill_of(std::int64_t prompt, std::int64_t start = 0) const;
  // `seen`: positions of all sequences. Without drawing.
  Seconds decode_of(std::int64_t sequences, std::int64_t seen = 0) const;
};

struct SimulatedServer {
  ServingTimes times;
  ServingLimits limits;
  std::int64_t target = 0;  // encoder-decoder: the longest answer; 0: prompt and answer share the cache
  // Tokens that a request gets: a full cache ends it.
  std::int64_t answered(const ArrivingRequest& request) const;
};

struct SimulatedRequest {
  Admission admission = Admission::accepted;
  Seconds arrived, started, first,
      ended;                // started: its prefill, the first time; first: its first token; arrived alone if refused
  std::int64_t answer = 0;  // tokens that it got
  Seconds queue() const { return started - arrived; }
  Seconds first_token() const { return first - arrived; }
  // Mean time between tokens. REQUIRES: answer > 1.
  Seconds per_token() const { return (ended - first) * (1 / static_cast<double>(answer - 1)); }
};

struct SimulatedServing {
  struct Step {
    Seconds begin, end;
    std::int64_t tokens = 0;
  };
  std::vector<SimulatedRequest> requests;  // in the order in which they arrived
  std::vector<Step> steps;
};

// Open loop: all of these requests, until each has its answer. REQUIRES: sorted by time.
SimulatedServing simulate(const SimulatedServer& server, std::span<const ArrivingRequest> arrivals);

// Closed loop: `users` ask, wait for the answer, pause and ask again, until there were traffic.requests. Each is a key
// of its own. One that is refused tries again after a second, as the server's Retry-After says.
SimulatedServing simulate_users(const SimulatedServer& server, const TrafficSpec& traffic, std::int64_t users);

}  // namespace systole

#pragma once
// The requests that a planned server gets: drawn from a seed, or read from a trace. Request i is a pure function of the
// seed and i, so that servers and rates are compared on the same requests.
//
// A trace is JSON lines, one request each; times are seconds from its start, and `key` may be absent:
//   {"at": 0.52, "prompt": 812, "answer": 96, "key": "alice"}

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/serve_spec.h"
#include "ground/base/result.h"

namespace systole {

struct ArrivingRequest {
  Seconds at;
  std::int64_t prompt = 1, answer = 1;  // tokens
  std::string key = {};                 // whose request it is (describe/serving/scheduler.h)
};

// Request i of the traffic, with at = 0. REQUIRES: no trace.
ArrivingRequest drawn_request(const TrafficSpec& traffic, std::int64_t i);

// Draw i of an exponential distribution with mean 1.
double drawn_gap(std::int64_t seed, std::int64_t i);

// So many requests with exponential gaps, `rate` a second.
std::vector<ArrivingRequest> poisson_arrivals(const TrafficSpec& traffic, double rate, std::int64_t count);

// The same requests, `times` as fast. REQUIRES: times > 0.
std::vector<ArrivingRequest> faster(std::span<const ArrivingRequest> arrivals, double times);

// Requests per second of a trace. REQUIRES: read_trace made it.
double rate_of(std::span<const ArrivingRequest> trace);

// Sorted by time. Errors: invalid, at its line: no such object, a number out of range; fewer than 2 requests, or all at
// one time.
Result<std::vector<ArrivingRequest>> read_trace(std::string_view text, const std::string& filename);

}  // namespace systole

#pragma once
// The most traffic that one device carries within the objective, by bisection over simulations of the same requests.

#include "predict/serving/outcome.h"

namespace systole {

// Of requests that could be served, so many may be refused.
constexpr double kMostRefused = 0.01;

// Whether the 95th percentiles are within serve.objective, and few requests are refused.
bool meets(const ServingOutcome& outcome, const ServeSpec& serve);

// Plays traffic: `load` is requests per second, users, or how many times as fast a trace comes. `trace`: of
// traffic.trace, else empty.
SimulatedServing play_load(const SimulatedServer& server, const TrafficSpec& traffic,
                           std::span<const ArrivingRequest> trace, double load);
// The load that the traffic asks for.
double asked_load(const TrafficSpec& traffic);

// A load that no device can carry, however long requests may wait: prefills take their time alone, decode steps are
// shared by all slots. For users: those that wait or run, and as many as pause meanwhile; at most traffic.requests, as
// further ones would ask nothing.
double most_load(const SimulatedServer& server, const TrafficSpec& traffic, std::span<const ArrivingRequest> trace);

struct ServingCapacity {
  double load = 0;         // 0: not even the least load meets the objective
  ServingOutcome outcome;  // at that load, else at the least
};

// To within 1%, for users exactly.
ServingCapacity capacity_of(const SimulatedServer& server, const ServeSpec& serve,
                            std::span<const ArrivingRequest> trace);

// Devices that carry `asked` where one carries `each`. REQUIRES: each > 0.
std::int64_t replicas_for(double asked, double each);

}  // namespace systole

#include "predict/serving/capacity.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace systole {
namespace {

constexpr double kLeastShare = 1e-3;  // of most_load: the least load that is tried
constexpr double kPrecision = 0.01;

// The device's time for a request, if all slots are always taken.
double seconds_of(const SimulatedServer& server, const ArrivingRequest& request) {
  if (request.prompt > server.limits.cache) return 0;  // refused
  const auto slots = static_cast<double>(server.limits.slots);
  return server.times.prefill_of(request.prompt).count() + static_cast<double>(server.answered(request) - 1) *
                                                               server.times.decode_of(server.limits.slots).count() /
                                                               slots;
}

}  // namespace

bool meets(const ServingOutcome& outcome, const ServeSpec& serve) {
  if (outcome.requests == outcome.too_long || outcome.refused_share() > kMostRefused) return false;
  if (serve.ttft && Seconds(outcome.ttft_p95.value) > *serve.ttft) return false;
  return !serve.tpot || Seconds(outcome.tpot_p95.value) <= *serve.tpot;
}

SimulatedServing play_load(const SimulatedServer& server, const TrafficSpec& traffic,
                           std::span<const ArrivingRequest> trace, double load) {
  if (!trace.empty()) return simulate(server, faster(trace, load));
  if (traffic.users) return simulate_users(server, traffic, std::llround(load));
  return simulate(server, poisson_arrivals(traffic, load, traffic.requests));
}

double asked_load(const TrafficSpec& traffic) {
  if (traffic.users) return static_cast<double>(*traffic.users);
  return traffic.rate.value_or(1);
}

double most_load(const SimulatedServer& server, const TrafficSpec& traffic, std::span<const ArrivingRequest> trace) {
  double seconds = 0;
  for (const ArrivingRequest& request : trace) seconds += seconds_of(server, request);
  if (!trace.empty()) return (trace.back().at - trace.front().at).count() / seconds;
  for (std::int64_t i = 0; i < traffic.requests; ++i) seconds += seconds_of(server, drawn_request(traffic, i));
  const auto requests = static_cast<double>(traffic.requests);
  if (!traffic.users) return requests / seconds;
  // Little's law: of so many requests a second, each is followed by a pause.
  const double pausing = traffic.pause && seconds > 0 ? requests / seconds * traffic.pause->count() : 0;
  return std::min(requests, static_cast<double>(server.limits.slots + server.limits.waiting) + std::floor(pausing));
}

ServingCapacity capacity_of(const SimulatedServer& server, const ServeSpec& serve,
                            std::span<const ArrivingRequest> trace) {
  const TrafficSpec& traffic = serve.traffic;
  const auto carried = [&](const SimulatedServing& played) { return meets(outcome_of(played, 0), serve); };
  const bool whole = traffic.users.has_value();
  double most = most_load(server, traffic, trace), least = whole ? 1 : most * kLeastShare;
  const bool none = !std::isfinite(most);  // all prompts are too long
  SimulatedServing best = play_load(server, traffic, trace, none ? 1 : least);
  if (none || !carried(best)) return {0, outcome_of(best)};
  const auto narrow = [&](double load) {
    SimulatedServing played = play_load(server, traffic, trace, load);
    const bool more = carried(played);
    (more ? least : most) = load;
    if (more) best = std::move(played);
  };
  if (whole) narrow(most);
  while (whole ? most - least > 1 : most - least > kPrecision * least)
    narrow(whole ? std::floor((least + most) / 2) : (least + most) / 2);
  return {least, outcome_of(best)};
}

std::int64_t replicas_for(double asked, double each) {
  return std::max<std::int64_t>(1, std::llround(std::ceil(asked / each)));
}

}  // namespace systole

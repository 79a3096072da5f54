// The most traffic that a device carries: against closed forms, and at its edges.

#include "predict/serving/capacity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace systole {
namespace {

SimulatedServer server_of(std::int64_t slots, double prefill, double decode, std::int64_t waiting = 64) {
  return {{{{1000, Seconds(prefill)}}, {{slots, Seconds(decode)}}},
          {.slots = slots, .cache = 1000, .waiting = waiting, .prefill = 1, .whole_prompts = true},
          0};
}

ServeSpec serve_of(std::int64_t answer, std::int64_t requests) {
  ServeSpec serve;
  serve.traffic.prompt.mean = 10;
  serve.traffic.answer.mean = answer;
  serve.traffic.requests = requests;
  serve.traffic.rate = 1;
  return serve;
}

// M/D/1 with S = 1: a request waits at all with probability ρ (arrivals see time averages), so that 95% have their
// token within S exactly as long as ρ ≤ 5%.
TEST(Capacity, no_wait_of_most_requests_is_a_load_of_their_share) {
  ServeSpec serve = serve_of(1, 20'000);
  serve.ttft = Seconds(1 + 1e-6);
  const ServingCapacity capacity = capacity_of(server_of(1, 1, 1), serve, {});
  EXPECT_NEAR(capacity.load, 0.05, 0.005);  // 3 standard errors of a share of 5% in 18,000 are 0.005
  EXPECT_LE(capacity.outcome.ttft_p95.value, 1 + 1e-6);
}

TEST(Capacity, without_a_limit_it_nears_the_device_at_work_all_the_time) {
  const SimulatedServer server = server_of(8, 0.1, 0.05);
  const ServeSpec serve = serve_of(101, 3000);
  const double most = most_load(server, serve.traffic, {});
  EXPECT_NEAR(most, 1 / (0.1 + 100 * 0.05 / 8), 1e-9);
  const ServingCapacity capacity = capacity_of(server, serve, {});
  EXPECT_GT(capacity.load, 0.8 * most);
  EXPECT_LE(capacity.load, most);
  EXPECT_LE(capacity.outcome.refused_share(), kMostRefused);
  EXPECT_GT(capacity.outcome.busy, 0.9);
}

TEST(Capacity, a_limit_below_the_devices_own_time_carries_nothing) {
  ServeSpec serve = serve_of(10, 500);
  serve.tpot = Seconds(0.04);
  EXPECT_EQ(capacity_of(server_of(8, 0.1, 0.05), serve, {}).load, 0);
  serve.tpot = Seconds(0.06);
  EXPECT_GT(capacity_of(server_of(8, 0.1, 0.05), serve, {}).load, 0);
}

TEST(Capacity, a_tighter_limit_carries_less) {
  ServeSpec serve = serve_of(20, 2000);
  double before = 1e9;
  for (const double limit : {2.0, 0.5, 0.25}) {
    serve.ttft = Seconds(limit);
    const double load = capacity_of(server_of(4, 0.1, 0.05), serve, {}).load;
    EXPECT_LE(load, before);
    before = load;
  }
}

TEST(Capacity, users_are_counted_whole) {
  ServeSpec serve = serve_of(10, 2000);
  serve.traffic.rate.reset();
  serve.traffic.users = 3;
  // One slot of 1 s a request: the third of three users waits two turns.
  serve.ttft = Seconds(1.15);
  EXPECT_EQ(capacity_of(server_of(1, 0.1, 0.1), serve, {}).load, 2);  // waits 1 s, then 0.1 s of prefill
  serve.ttft = Seconds(2.15);
  EXPECT_EQ(capacity_of(server_of(1, 0.1, 0.1), serve, {}).load, 3);
  serve.ttft.reset();
  EXPECT_EQ(capacity_of(server_of(1, 0.1, 0.1, 5), serve, {}).load, 6);
}

TEST(Capacity, users_who_pause_are_more_than_wait_or_run) {
  ServeSpec serve = serve_of(10, 2000);
  serve.traffic.rate.reset();
  serve.traffic.users = 3;
  serve.traffic.pause = Seconds(100.0);
  const SimulatedServer server = server_of(1, 0.1, 0.1, 5);  // 1 s a request
  EXPECT_NEAR(most_load(server, serve.traffic, {}), 1 + 5 + 100, 1);
  const ServingCapacity capacity = capacity_of(server, serve, {});
  EXPECT_GT(capacity.load, 20);
  EXPECT_LE(capacity.load, 106);
  EXPECT_LE(capacity.outcome.refused_share(), kMostRefused);
  serve.traffic.requests = 100;
  EXPECT_EQ(most_load(server, serve.traffic, {}), 100);
}

TEST(Capacity, a_trace_is_played_faster) {
  std::vector<ArrivingRequest> trace;
  for (int i = 0; i < 1000; ++i) trace.push_back({Seconds(static_cast<double>(i)), 10, 1});
  ServeSpec serve = serve_of(1, 1000);
  serve.traffic.rate.reset();
  serve.traffic.trace = "t.jsonl";
  serve.ttft = Seconds(0.1 + 1e-6);
  // Evenly spaced requests of 0.1 s never wait up to ten times the speed.
  EXPECT_NEAR(capacity_of(server_of(1, 0.1, 0.1), serve, trace).load, 10, 0.2);
}

TEST(Capacity, replicas_are_rounded_up) {
  EXPECT_EQ(replicas_for(10, 3), 4);
  EXPECT_EQ(replicas_for(9, 3), 3);
  EXPECT_EQ(replicas_for(0.1, 3), 1);
}

}  // namespace
}  // namespace systole

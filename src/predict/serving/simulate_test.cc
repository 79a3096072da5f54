// The simulation of a server: closed forms of queues, its steps by hand, and that it plays the server's scheduler.

#include "predict/serving/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "predict/serving/outcome.h"

namespace systole {
namespace {

// One whole prompt a step, of `prefill` seconds, and decodes of `decode` seconds.
SimulatedServer server_of(std::int64_t slots, double prefill, double decode, std::int64_t waiting = 1'000'000) {
  return {{{{1000, Seconds(prefill)}}, {{slots, Seconds(decode)}}},
          {.slots = slots, .cache = 1000, .waiting = waiting, .prefill = 1, .whole_prompts = true},
          0};
}

TrafficSpec traffic_of(std::int64_t answer, std::int64_t requests, std::int64_t seed = 0) {
  TrafficSpec traffic;
  traffic.prompt.mean = 10;
  traffic.answer.mean = answer;
  traffic.requests = requests;
  traffic.seed = seed;
  return traffic;
}

TEST(Simulate, steps_by_hand) {
  // Both arrive at 0: the first is prefilled alone, the second between two tokens of the first.
  const std::vector<ArrivingRequest> arrivals = {{Seconds(0.0), 10, 3}, {Seconds(0.0), 10, 2}};
  const SimulatedServing played = simulate(server_of(2, 10, 1), arrivals);
  ASSERT_EQ(played.requests.size(), 2U);
  const SimulatedRequest &one = played.requests[0], &two = played.requests[1];
  EXPECT_EQ(one.first, Seconds(10.0));
  EXPECT_EQ(two.started, Seconds(10.0));
  EXPECT_EQ(two.first, Seconds(20.0));
  EXPECT_EQ(one.ended, Seconds(22.0));  // tokens at 10, 21 and 22
  EXPECT_EQ(two.ended, Seconds(22.0));
  EXPECT_EQ(one.per_token(), Seconds(6.0));
  EXPECT_EQ(played.steps.size(), 3U);
}

// Prompts of 10 in pieces of 1000: 1000 × 1001 / 2 positions. A decode sees the prompt and the answer so far.
TEST(Simulate, positions_that_tokens_see_and_draws_take_time) {
  SimulatedServer server = server_of(2, 10, 1);
  server.times.prefill_seen = Seconds(1e-5);
  server.times.decode_seen = Seconds(0.1);
  server.times.draw = Seconds(0.5);
  const std::vector<ArrivingRequest> arrivals = {{Seconds(0.0), 10, 3}};
  const SimulatedRequest one = simulate(server, arrivals).requests[0];
  EXPECT_NEAR(one.first.count(), 10 + 5.005 + 0.5, 1e-9);
  EXPECT_NEAR((one.ended - one.first).count(), 1 + 1.1 + 0.5 + 1 + 1.2 + 0.5, 1e-9);
  EXPECT_NEAR(server.times.prefill_of(10, 100).count(), 10 + 1e-5 * (1000 * 100 + 500500), 1e-9);
}

TEST(Simulate, a_long_prompt_in_pieces_holds_others_up_for_one_at_a_time) {
  SimulatedServer server;
  server.times = {{{4, Seconds(1.0)}, {10, Seconds(2.0)}}, {{1, Seconds(0.5)}, {2, Seconds(0.75)}}};
  server.limits = {.slots = 2, .cache = 1000, .waiting = 4, .prefill = 10};
  // The second is computed in pieces of 10 - 4, 10, 10 and 4 tokens, beside a token of the first each time.
  const std::vector<ArrivingRequest> arrivals = {{Seconds(0.0), 4, 6}, {Seconds(0.0), 30, 2}};
  const SimulatedServing played = simulate(server, arrivals);
  const SimulatedRequest &one = played.requests[0], &two = played.requests[1];
  EXPECT_EQ(one.first, Seconds(1.0));
  EXPECT_EQ(two.started, Seconds(1.0));
  EXPECT_EQ(two.first, Seconds(3.0 + 2.5 + 2.5 + 1));
  EXPECT_EQ(one.ended, Seconds(3.0 + 2.5 + 2.5 + 1.5 + 0.75 + 0.5));
  EXPECT_EQ(two.ended, Seconds(3.0 + 2.5 + 2.5 + 1.5 + 0.75));
  EXPECT_EQ(server.times.prefill_of(24), Seconds(2 + 2 + 1.0));
}

// With 5 pages of 2 tokens, the first's fifth token takes those of the second in the middle of its prompt.
TEST(Simulate, a_preempted_request_started_when_it_first_did) {
  SimulatedServer server;
  server.times = {{{8, Seconds(1.0)}}, {{1, Seconds(0.25)}, {2, Seconds(0.5)}}};
  server.limits = {.slots = 2, .cache = 8, .waiting = 4, .prefill = 3, .pages = 5, .page = 2};
  const std::vector<ArrivingRequest> arrivals = {{Seconds(0.0), 3, 4}, {Seconds(0.0), 4, 1}};
  const SimulatedServing played = simulate(server, arrivals);
  const SimulatedRequest &one = played.requests[0], &two = played.requests[1];
  EXPECT_EQ(one.ended, Seconds(2.75));  // tokens at 1, 2.25, 2.5 and 2.75
  EXPECT_EQ(two.started, Seconds(1.0));
  EXPECT_EQ(two.first, Seconds(2.75 + 2));  // two pieces, from its beginning
  EXPECT_EQ(two.ended, two.first);
}

TEST(Simulate, an_idle_server_queues_nothing) {
  const SimulatedServing played = simulate(server_of(1, 0.5, 0.25), poisson_arrivals(traffic_of(5, 200), 1e-4, 200));
  for (const SimulatedRequest& request : played.requests) {
    EXPECT_EQ(request.queue(), Seconds());
    EXPECT_NEAR(request.first_token().count(), 0.5, 1e-6);
    EXPECT_NEAR(request.per_token().count(), 0.25, 1e-6);
  }
}

// Pollaczek and Khinchine: the mean wait of M/D/1 is ρ S / 2 (1 - ρ). With 20 seeds and 95% intervals, fewer than 15
// cover it once in 2,900 times; the seeds are fixed. At 60% a wait has a standard deviation of 1.3 means and depends on
// the next 20 or so, so that a mean over 20 × 7,200 requests has a standard error of 1.5%; the bound is three of them.
TEST(Simulate, one_slot_waits_as_M_D_1) {
  for (const double rho : {0.3, 0.6}) {
    int covered = 0;
    double sum = 0;
    for (int seed = 0; seed < 20; ++seed) {
      const std::int64_t n = 8000;
      const auto arrivals = poisson_arrivals(traffic_of(1, n, seed), rho, n);
      const ServingOutcome outcome = outcome_of(simulate(server_of(1, 1, 1), arrivals));
      const double expected = rho / (2 * (1 - rho));
      covered += outcome.queue_mean.low <= expected && expected <= outcome.queue_mean.high ? 1 : 0;
      sum += outcome.queue_mean.value / expected;
      EXPECT_NEAR(outcome.busy, rho, 0.05) << "seed " << seed;
    }
    EXPECT_GE(covered, 15) << rho;
    EXPECT_NEAR(sum / 20, 1, 0.045) << rho;
  }
}

TEST(Simulate, one_seed_gives_one_answer) {
  const auto play = [](std::int64_t seed) {
    TrafficSpec traffic = traffic_of(50, 300, seed);
    traffic.prompt = {100, TokenLengths::Distribution::lognormal, 0.7};
    return outcome_of(simulate(server_of(4, 0.1, 0.01), poisson_arrivals(traffic, 5, 300)));
  };
  EXPECT_EQ(play(1).ttft_p95.value, play(1).ttft_p95.value);
  EXPECT_EQ(play(1).ttft_p95.high, play(1).ttft_p95.high);
  EXPECT_NE(play(1).ttft_p95.value, play(2).ttft_p95.value);
}

TEST(Simulate, lengths_have_their_means) {
  TrafficSpec traffic;
  traffic.prompt = {200, TokenLengths::Distribution::lognormal, 0.8};
  traffic.answer = {100, TokenLengths::Distribution::uniform, 0};
  double prompts = 0, answers = 0;
  const int n = 20'000;
  for (int i = 0; i < n; ++i) {
    const ArrivingRequest request = drawn_request(traffic, i);
    prompts += static_cast<double>(request.prompt);
    answers += static_cast<double>(request.answer);
    EXPECT_LE(request.answer, 199);
    EXPECT_GE(request.answer, 1);
  }
  // Four standard errors: of the lognormal mean √(e^σ² - 1), of the uniform 1/√3, both of the mean over √n.
  EXPECT_NEAR(prompts / n, 200, 4 * 200 * std::sqrt(std::expm1(0.64)) / std::sqrt(n));
  EXPECT_NEAR(answers / n, 100, 4 * 100 / std::sqrt(3.0) / std::sqrt(n));
}

TEST(Simulate, a_full_cache_ends_an_answer_and_a_prompt_beyond_it_is_refused) {
  const std::vector<ArrivingRequest> arrivals = {{Seconds(0.0), 998, 50}, {Seconds(0.0), 1001, 5}};
  const SimulatedServing played = simulate(server_of(2, 1, 1), arrivals);
  EXPECT_EQ(played.requests[0].answer, 3);  // of prefill, and of the two positions left
  EXPECT_EQ(played.requests[1].admission, Admission::too_long);
}

TEST(Simulate, users_wait_for_their_answers) {
  TrafficSpec traffic = traffic_of(5, 1000);
  // Two users, two slots: no request waits for a slot. Each asks every 1 + 4 × 0.5 s, and the other's prefills come
  // between its tokens.
  const SimulatedServing played = simulate_users(server_of(2, 1, 0.5), traffic, 2);
  EXPECT_EQ(played.requests.size(), 1000U);
  const ServingOutcome outcome = outcome_of(played);
  EXPECT_EQ(outcome.refused, 0);
  EXPECT_GT(outcome.busy, 0.999);
  EXPECT_LT(outcome.ttft_p95.value, 1 + 1 + 0.5 + 1e-9);
  traffic.pause = Seconds(100.0);
  EXPECT_LT(outcome_of(simulate_users(server_of(2, 1, 0.5), traffic, 2)).busy, 0.1);
}

TEST(Simulate, more_users_than_may_wait_are_refused_and_come_again) {
  const SimulatedServing played = simulate_users(server_of(1, 1, 1, 0), traffic_of(2, 100), 3);
  EXPECT_EQ(played.requests.size(), 100U);
  EXPECT_GT(outcome_of(played).refused, 0);
}

// The order of starts is that of the server's scheduler with the same requests, which is not that of arrival: whoever
// sent many waits behind whoever sent one. A change of its fairness changes the plan.
TEST(Simulate, plays_the_servers_scheduler) {
  std::vector<ArrivingRequest> arrivals;
  for (int i = 0; i < 5; ++i) arrivals.push_back({Seconds(0.0), 100, 2, "many"});
  arrivals.push_back({Seconds(0.0), 100, 2, "one"});
  const SimulatedServer server = server_of(1, 1, 1);
  const SimulatedServing played = simulate(server, arrivals);
  std::vector<std::uint64_t> order, expected;
  for (std::uint64_t id = 0; id < arrivals.size(); ++id) order.push_back(id);
  std::ranges::sort(order, {}, [&](std::uint64_t id) { return played.requests[id].started; });

  ServingScheduler scheduler(server.limits);
  for (std::uint64_t id = 0; id < arrivals.size(); ++id)
    ASSERT_EQ(scheduler.add({id, arrivals[id].key, arrivals[id].prompt, arrivals[id].answer}), Admission::accepted);
  for (ServingStep step = scheduler.next(); !step.empty(); step = scheduler.next()) {
    for (const ServingStep::Piece& piece : step.prefill) expected.push_back(piece.id);
    for (const ServingStep::Sequence& placed : step.decode) scheduler.remove(placed.id);  // its second token
  }
  EXPECT_EQ(order, expected);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 5, 1, 2, 3, 4}));
}

TEST(Simulate, a_trace_is_read_in_time_order_and_its_errors_name_the_line) {
  const auto trace = read_trace(
      "{\"at\": 2, \"prompt\": 7, \"answer\": 3, \"key\": \"a\"}\n\n"
      "{\"at\": 0.5, \"prompt\": 5, \"answer\": 1, \"status\": 200}\n",
      "t.jsonl");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ((*trace)[0].prompt, 5);
  EXPECT_EQ((*trace)[1].key, "a");
  EXPECT_NEAR(rate_of(*trace), 1 / 1.5, 1e-12);
  const auto line_of = [](std::string_view text) { return read_trace(text, "t.jsonl").error().where.line; };
  EXPECT_EQ(line_of("{\"at\": 0, \"prompt\": 5, \"answer\": 1}\n{\"at\": 1, \"prompt\": 5}\n"), 2);
  EXPECT_EQ(line_of("{\"at\": -1, \"prompt\": 5, \"answer\": 1}\n"), 1);
  EXPECT_EQ(line_of("{\"at\": 1, \"prompt\": 0, \"answer\": 1}\n"), 1);
  EXPECT_FALSE(read_trace("{\"at\": 1, \"prompt\": 1, \"answer\": 1}\n", "t.jsonl").ok());
}

}  // namespace
}  // namespace systole

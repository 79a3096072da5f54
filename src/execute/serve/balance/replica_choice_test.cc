#include "execute/serve/balance/replica_choice.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace systole {
namespace {

ReplicaChoice ready_choice(int replicas) {
  ReplicaChoice choice(replicas);
  for (int i = 0; i < replicas; ++i) choice.set_ready(i, true);
  return choice;
}

TEST(RequestCost, counts_the_bytes_and_what_is_asked_for) {
  const std::string prompt(4000, 'x');
  const auto tokens = [&](const std::string& more) {
    return request_cost(R"({"prompt": ")" + prompt + "\"" + more + "}").tokens;
  };
  EXPECT_NEAR(static_cast<double>(tokens(R"(, "max_tokens": 100)")), 1100, 20);
  EXPECT_NEAR(static_cast<double>(tokens(R"(, "max_completion_tokens" : 50, "max_tokens": 100, "n":2)")), 1100, 30);
  EXPECT_GT(tokens(""), 1000);
  for (const char* wrong : {R"(, "max_tokens": "many")", R"(, "max_tokens": -5)", R"(, "max_tokens")",
                            R"(, "max_tokens": 99999999999999999999999)"})
    EXPECT_EQ(tokens(wrong), tokens(std::string(std::string(wrong).size(), ' '))) << wrong;
  EXPECT_LT(tokens(R"(, "max_tokens": 9999999999, "n": 9999999999)"), std::int64_t{1} << 41);
  EXPECT_EQ(request_cost(R"({"prompt": "say \"max_tokens\": 5000"})").tokens, request_cost(std::string(39, ' ')).tokens)
      << "in a text";
}

TEST(RequestCost, a_prefix_is_how_the_prompt_begins_wherever_it_stands) {
  const std::string begin(600, 'a');
  const auto prefix = [](const std::string& body) { return request_cost(body).prefix; };
  EXPECT_EQ(prefix(R"({"model": "m", "messages": ")" + begin + "b\"}"), prefix(R"({"messages":")" + begin + "c\"}"));
  EXPECT_NE(prefix(R"({"prompt": ")" + begin + "\"}"), prefix(R"({"prompt": "b)" + begin + "\"}"));
  for (const char* none : {"", "{", "{\"prompt\"", "{\"prompt\":", "{\"prompt\": ", "garbage", "{\"tokens\": [1]}"})
    EXPECT_FALSE(prefix(none)) << none;
}

TEST(ReplicaChoice, takes_the_least_loaded_of_those_that_are_ready) {
  ReplicaChoice choice(3);
  EXPECT_FALSE(choice.choose({10}));
  choice.set_ready(0, true);
  choice.set_ready(2, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(choice.is_ready(i), i != 1) << i;
  EXPECT_EQ(choice.choose({100}), 0);
  EXPECT_EQ(choice.choose({30}), 2);
  EXPECT_EQ(choice.choose({30}), 2);
  EXPECT_EQ(choice.tokens(2), 60);
  EXPECT_EQ(choice.choose({1}, {2}), 0) << "2 was tried";
  EXPECT_FALSE(choice.choose({1}, {2, 0}));
  choice.give_back(0, 101);
  EXPECT_EQ(choice.choose({1}), 0);
  choice.set_ready(0, false);
  EXPECT_EQ(choice.choose({1}), 2);
}

TEST(ReplicaChoice, equals_take_turns) {
  ReplicaChoice choice = ready_choice(4);
  std::set<int> chosen;
  for (int i = 0; i < 4; ++i) {
    const int replica = choice.choose({7}).value();
    choice.give_back(replica, 7);
    chosen.insert(replica);
  }
  EXPECT_EQ(chosen.size(), 4U);
}

TEST(ReplicaChoice, a_prefix_stays_where_it_was_until_that_replica_is_too_far_behind) {
  ReplicaChoice choice = ready_choice(2);
  const RequestCost cost{1000, 77};
  const int home = choice.choose(cost).value(), other = 1 - home;
  EXPECT_EQ(choice.choose(cost), home);
  EXPECT_EQ(choice.choose(cost), home) << "2000 tokens beside none are within the bound";
  EXPECT_EQ(choice.choose(cost), other) << "3000 are not";
  EXPECT_EQ(choice.choose(cost), other) << "and there it stays";
  choice.give_back(other, choice.tokens(other));
  choice.give_back(home, choice.tokens(home));
  choice.set_ready(other, false);
  EXPECT_EQ(choice.choose(cost), home) << "the other is not ready";
  choice.set_ready(other, true);
  EXPECT_EQ(choice.choose({1000, 78}), other) << "another prefix goes to the least loaded";
}

TEST(ReplicaChoice, a_replica_that_begins_anew_has_no_prefix) {
  ReplicaChoice choice = ready_choice(2);
  const int home = choice.choose({10, 5}).value();
  choice.forget(home);
  EXPECT_EQ(choice.choose({10, 5}), 1 - home);
}

// However requests come and go, no replica is left with tokens, and none gets a request while it is not ready.
TEST(ReplicaChoice, conserves_tokens) {
  ReplicaChoice choice = ready_choice(3);
  std::vector<std::pair<int, std::int64_t>> open;
  std::uint64_t state = 1;
  const auto next = [&](std::uint64_t below) { return (state = state * 6364136223846793005U + 1) % 65521 % below; };
  for (int i = 0; i < 10'000; ++i) {
    choice.set_ready(static_cast<int>(next(3)), next(4) != 0);
    const RequestCost cost{static_cast<std::int64_t>(next(500)) + 1, next(20)};
    if (const std::optional<int> replica = choice.choose(cost)) {
      EXPECT_TRUE(choice.is_ready(*replica));
      open.emplace_back(*replica, cost.tokens);
    }
    if (open.size() > next(30)) {
      choice.give_back(open.front().first, open.front().second);
      open.erase(open.begin());
    }
  }
  for (const auto& [replica, tokens] : open) choice.give_back(replica, tokens);
  for (int replica = 0; replica < 3; ++replica) EXPECT_EQ(choice.tokens(replica), 0);
}

}  // namespace
}  // namespace systole

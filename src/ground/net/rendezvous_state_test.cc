#include "ground/net/rendezvous_state.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

using Op = RendezvousOp;
using Outcome = RendezvousOutcome;
using Answers = std::vector<RendezvousState::Answer>;

// A state with a manual clock and numbered clients.
struct Desk {
  RendezvousState state;
  Seconds now{1e6};
  Answers ask(std::uint64_t client, const RendezvousRequest& request) { return state.ask(client, request, now); }
  RendezvousReply one(const RendezvousRequest& request) {
    const Answers answers = ask(99, request);
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? RendezvousReply{} : answers[0].reply;
  }
  Answers after(double seconds) {
    now += Seconds(seconds);
    return state.advance(now);
  }
};

RendezvousRequest set(std::string key, std::string value, std::uint64_t generation = 0) {
  return {.op = Op::set, .generation = generation, .key = std::move(key), .value = std::move(value)};
}
RendezvousRequest get(std::string key, std::uint32_t wait_ms = 0, std::optional<std::string> unlike = {}) {
  return {.op = Op::get, .wait_ms = wait_ms, .key = std::move(key), .expected = std::move(unlike)};
}
RendezvousRequest barrier(std::int64_t members, std::uint64_t member, std::uint32_t wait_ms) {
  return {.op = Op::barrier, .holder = member, .number = members, .wait_ms = wait_ms, .key = "b"};
}
RendezvousRequest lease(std::uint64_t holder, std::uint32_t ms, std::uint64_t generation = 0) {
  return {.op = Op::lease,
          .generation = generation,
          .holder = holder,
          .wait_ms = ms,
          .key = "rank/3",
          .value = "holder " + std::to_string(holder)};
}
RendezvousRequest fence(std::int64_t generation) { return {.op = Op::fence, .number = generation, .key = "g"}; }

TEST(RendezvousState, sets_gets_and_erases_by_prefix) {
  Desk desk;
  EXPECT_EQ(desk.one(get("a")).outcome, Outcome::absent);
  desk.one(set("a/1", "x"));
  desk.one(set("a/2", "y"));
  desk.one(set("b", "z"));
  EXPECT_EQ(desk.one(get("a/1")).value, "x");
  EXPECT_EQ(desk.one({.op = Op::list, .key = "a/"}).entries.size(), 2u);
  EXPECT_EQ(desk.one({.op = Op::erase, .key = "a/"}).number, 2);
  EXPECT_EQ(desk.one(get("a/2")).outcome, Outcome::absent);
  EXPECT_EQ(desk.one(get("b")).value, "z");
}

TEST(RendezvousState, a_get_waits_for_the_key_or_its_deadline) {
  Desk desk;
  EXPECT_TRUE(desk.ask(1, get("a", 1000)).empty());
  EXPECT_TRUE(desk.ask(2, get("a", 500)).empty());
  EXPECT_TRUE(desk.after(0.4).empty());
  const Answers late = desk.after(0.2);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].client, 2u);
  EXPECT_EQ(late[0].reply.outcome, Outcome::absent);
  const Answers woken = desk.ask(3, set("a", "here"));
  ASSERT_EQ(woken.size(), 2u);
  EXPECT_EQ(woken[1].client, 1u);
  EXPECT_EQ(woken[1].reply.value, "here");
  EXPECT_EQ(desk.state.waiting(), 0u);
  EXPECT_FALSE(desk.state.next().has_value());
}

TEST(RendezvousState, a_get_waits_for_another_value) {
  Desk desk;
  desk.one(set("plan", "1"));
  EXPECT_TRUE(desk.ask(1, get("plan", 1000, "1")).empty());
  EXPECT_EQ(desk.ask(2, set("plan", "1")).size(), 1u);  // an unchanged value wakes nobody
  EXPECT_EQ(desk.ask(2, set("plan", "2")).size(), 2u);
  EXPECT_EQ(desk.one(get("plan", 1000, "1")).value, "2");
}

TEST(RendezvousState, adds_and_swaps) {
  Desk desk;
  EXPECT_EQ(desk.one({.op = Op::add, .number = 5, .key = "n"}).number, 5);
  EXPECT_EQ(desk.one({.op = Op::add, .number = -7, .key = "n"}).number, -2);
  EXPECT_EQ(desk.one(get("n")).value, "-2");
  EXPECT_EQ(desk.one({.op = Op::add, .number = INT64_MIN, .key = "n"}).outcome, Outcome::refused);
  EXPECT_EQ(desk.one(get("n")).value, "-2");
  desk.one(set("t", "text"));
  EXPECT_EQ(desk.one({.op = Op::add, .number = 1, .key = "t"}).outcome, Outcome::refused);

  const RendezvousRequest first{.op = Op::compare_and_set, .key = "c", .value = "mine"};
  EXPECT_EQ(desk.one(first).outcome, Outcome::ok);
  const RendezvousReply second = desk.one({.op = Op::compare_and_set, .key = "c", .value = "yours"});
  EXPECT_EQ(second.outcome, Outcome::differs);
  EXPECT_EQ(second.value, "mine");
  EXPECT_EQ(desk.one({.op = Op::compare_and_set, .key = "c", .value = "yours", .expected = "mine"}).value, "yours");
  EXPECT_EQ(desk.one({.op = Op::compare_and_set, .key = "none", .value = "x", .expected = ""}).outcome,
            Outcome::absent);
}

TEST(RendezvousState, a_barrier_lets_all_go_at_the_last_and_can_be_used_again) {
  Desk desk;
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(desk.ask(1, barrier(3, 0, 1000)).empty());
    EXPECT_TRUE(desk.ask(2, barrier(3, 2, 1000)).empty());
    EXPECT_EQ(desk.ask(4, barrier(3, 2, 1000)).at(0).reply.outcome, Outcome::taken);
    EXPECT_EQ(desk.ask(5, barrier(4, 1, 1000)).at(0).reply.outcome, Outcome::refused);
    const Answers all = desk.ask(3, barrier(3, 1, 1000));
    ASSERT_EQ(all.size(), 3u);
    for (const auto& answer : all) EXPECT_EQ(answer.reply.outcome, Outcome::ok);
    EXPECT_EQ(desk.state.waiting(), 0u);
  }
}

TEST(RendezvousState, a_barrier_names_who_is_missing_at_the_deadline) {
  Desk desk;
  desk.ask(1, barrier(5, 0, 1000));
  desk.ask(2, barrier(5, 3, 1000));
  const Answers late = desk.after(1.5);
  ASSERT_EQ(late.size(), 2u);
  for (const auto& answer : late) {
    EXPECT_EQ(answer.reply.outcome, Outcome::missing);
    EXPECT_EQ(answer.reply.number, 3);
    EXPECT_EQ(answer.reply.value, "1, 2, 4");
  }
  // A member whose connection closed does not count as arrived.
  desk.ask(1, barrier(2, 0, 1000));
  desk.state.leave(1);
  EXPECT_EQ(desk.one(barrier(2, 1, 0)).value, "0");
  const RendezvousReply many = desk.one({.op = Op::barrier, .holder = 1, .number = 100, .key = "many"});
  EXPECT_EQ(many.number, 99);
  EXPECT_NE(many.value.find("32 and 67 more"), std::string::npos) << many.value;
}

TEST(RendezvousState, a_lease_lives_by_the_time_of_the_server_alone) {
  Desk desk;
  EXPECT_EQ(desk.one(lease(1, 1000)).outcome, Outcome::ok);
  desk.after(0.9);
  EXPECT_EQ(desk.one(lease(1, 1000)).outcome, Outcome::ok);
  desk.after(0.9);
  const RendezvousReply other = desk.one(lease(2, 1000));
  EXPECT_EQ(other.outcome, Outcome::taken);
  EXPECT_EQ(other.value, "holder 1");
  EXPECT_GT(desk.one({.op = Op::leases, .key = "rank/"}).entries.at(0).number, 0);
  desk.after(0.2);
  EXPECT_LE(desk.one({.op = Op::leases, .key = "rank/"}).entries.at(0).number, 0);
  EXPECT_EQ(desk.one(lease(1, 1000)).outcome, Outcome::absent) << "what ran out does not come back to life";
  EXPECT_EQ(desk.one(lease(2, 1000)).outcome, Outcome::ok);
  EXPECT_EQ(desk.one({.op = Op::release, .holder = 1, .key = "rank/3"}).outcome, Outcome::absent);
  EXPECT_EQ(desk.one({.op = Op::release, .holder = 2, .key = "rank/3"}).outcome, Outcome::ok);
  EXPECT_TRUE(desk.one({.op = Op::leases, .key = ""}).entries.empty());
}

TEST(RendezvousState, a_new_generation_ends_all_that_the_old_one_had) {
  Desk desk;
  EXPECT_EQ(desk.one(set("a", "x", 1)).outcome, Outcome::stale) << "generation 1 has not begun";
  EXPECT_EQ(desk.one(fence(1)).outcome, Outcome::ok);
  desk.one(set("of the run", "stays"));
  desk.one(set("of one", "goes", 1));
  desk.one(lease(1, 1'000'000, 1));
  RendezvousRequest waits = get("never", 100'000);
  waits.generation = 1;
  EXPECT_TRUE(desk.ask(5, waits).empty());
  RendezvousRequest meets = barrier(2, 0, 100'000);
  meets.generation = 1;
  EXPECT_TRUE(desk.ask(6, meets).empty());
  EXPECT_TRUE(desk.ask(7, get("never", 100'000)).empty());  // without a generation: keeps waiting

  const Answers told = desk.ask(99, fence(2));
  ASSERT_EQ(told.size(), 3u);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(told[i].reply.outcome, Outcome::stale);
    EXPECT_EQ(told[i].reply.number, 2);
  }
  EXPECT_EQ(desk.one(set("late", "x", 1)).outcome, Outcome::stale);
  EXPECT_EQ(desk.one(lease(1, 1000, 1)).outcome, Outcome::stale);
  EXPECT_EQ(desk.one(get("of one")).outcome, Outcome::absent);
  EXPECT_EQ(desk.one(get("of the run")).value, "stays");
  EXPECT_EQ(desk.one(lease(2, 1000, 2)).outcome, Outcome::ok);
  EXPECT_EQ(desk.one(fence(2)).outcome, Outcome::differs);
  EXPECT_EQ(desk.one(fence(1)).number, 2);
  EXPECT_EQ(desk.one(barrier(2, 0, 0)).value, "1") << "the old barrier is forgotten";
}

TEST(RendezvousState, is_bounded) {
  RendezvousLimits limits;
  limits.places = 3;
  limits.total = 100;
  Desk desk{RendezvousState(limits)};
  EXPECT_EQ(desk.one(set(std::string(257, 'k'), "")).outcome, Outcome::refused);
  EXPECT_EQ(desk.one(set("k", std::string(65'537, 'v'))).outcome, Outcome::refused);
  for (const char* key : {"1", "2", "3"}) EXPECT_EQ(desk.one(set(key, "v")).outcome, Outcome::ok);
  EXPECT_EQ(desk.one(set("4", "v")).outcome, Outcome::refused);
  EXPECT_EQ(desk.one(set("1", std::string(90, 'v'))).outcome, Outcome::ok);
  EXPECT_EQ(desk.one(set("2", std::string(10, 'v'))).outcome, Outcome::refused);
  EXPECT_EQ(desk.one(set("1", "")).outcome, Outcome::ok) << "what was there is given back";
  EXPECT_EQ(desk.one(set("2", std::string(90, 'v'))).outcome, Outcome::ok);
  EXPECT_EQ(desk.one(lease(1, 1000)).outcome, Outcome::refused);
  EXPECT_EQ(desk.one({.op = Op::barrier, .number = 0, .key = "b"}).outcome, Outcome::refused);
  EXPECT_EQ(desk.one({.op = Op::barrier, .holder = 2, .number = 2, .key = "b"}).outcome, Outcome::refused);
}

TEST(RendezvousState, a_list_longer_than_a_frame_is_refused) {
  Desk desk;
  for (int i = 0; i < 17; ++i) desk.one(set("big/" + std::to_string(i), std::string(64 * 1024, 'v')));
  EXPECT_EQ(desk.one({.op = Op::list, .key = "big/"}).outcome, Outcome::refused);
  EXPECT_EQ(desk.one({.op = Op::list, .key = "big/1"}).entries.size(), 8u);
}

}  // namespace
}  // namespace systole

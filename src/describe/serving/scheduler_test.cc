#include "describe/serving/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ground/base/clock.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

using Ids = std::vector<std::uint64_t>;
using Piece = ServingStep::Piece;
using Pieces = std::vector<Piece>;

template <typename Each>
Ids ids(const std::vector<Each>& each) {
  Ids result;
  for (const Each& one : each) result.push_back(one.id);
  return result;
}

TEST(ServingScheduler, a_prompt_joins_running_sequences_without_waiting_for_their_end) {
  ServingScheduler scheduler({.slots = 2, .cache = 100, .waiting = 4, .prefill = 10});
  EXPECT_EQ(scheduler.add({.id = 1, .prompt = 10, .answer = 50}), Admission::accepted);
  ServingStep step = scheduler.next();
  EXPECT_EQ(step.prefill, (Pieces{{1, 0, 0, 10, true, true}}));
  EXPECT_TRUE(step.decode.empty()) << "its first token comes with the prefill";
  scheduler.add({.id = 2, .prompt = 10, .answer = 50});
  scheduler.add({.id = 3, .prompt = 10, .answer = 50});
  step = scheduler.next();
  EXPECT_EQ(step.prefill, (Pieces{{2, 1, 0, 10, true, true}}));
  EXPECT_EQ(step.decode, (std::vector<ServingStep::Sequence>{{1, 0}})) << "the running one goes on in the same step";
  EXPECT_EQ(scheduler.waiting(), 1);
  EXPECT_TRUE(scheduler.remove(1));
  EXPECT_FALSE(scheduler.remove(1)) << "it is gone";
  step = scheduler.next();
  EXPECT_EQ(step.prefill, (Pieces{{3, 0, 0, 10, true, true}})) << "in the slot that became free";
  EXPECT_EQ(ids(step.decode), Ids{2});
  for (const std::uint64_t id : {2, 3}) scheduler.remove(id);
  EXPECT_TRUE(scheduler.next().empty());
}

TEST(ServingScheduler, a_step_has_so_many_tokens_of_prompts_and_a_long_one_takes_several) {
  ServingScheduler scheduler({.slots = 8, .cache = 100, .waiting = 8, .prefill = 20});
  scheduler.add({.id = 1, .prompt = 10});
  scheduler.add({.id = 2, .prompt = 35});
  scheduler.add({.id = 3, .prompt = 10});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{1, 0, 0, 10, true, true}, {2, 1, 0, 10, true, false}}));
  ServingStep step = scheduler.next();
  EXPECT_EQ(step.prefill, (Pieces{{2, 1, 10, 30, false, false}})) << "it is finished before another one begins";
  EXPECT_EQ(ids(step.decode), Ids{1}) << "the running one goes on beside it";
  step = scheduler.next();
  EXPECT_EQ(step.prefill, (Pieces{{2, 1, 30, 35, false, true}, {3, 2, 0, 10, true, true}}));
  EXPECT_EQ(ids(step.decode), Ids{1}) << "a prompt that is not finished has no token to go on from";
  EXPECT_EQ(ids(scheduler.next().decode), (Ids{1, 2, 3}));

  scheduler.add({.id = 4, .prompt = 50});
  scheduler.add({.id = 5, .prompt = 15});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{4, 3, 0, 20, true, false}}));
  scheduler.remove(4);
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{5, 3, 0, 15, true, true}}))
      << "the rest of a request that is gone is not computed";
}

TEST(ServingScheduler, a_step_of_running_sequences_may_have_fewer_tokens_of_prompts) {
  ServingScheduler scheduler({.slots = 2, .cache = 100, .waiting = 8, .prefill = 20, .prefill_beside = 6});
  scheduler.add({.id = 1, .prompt = 30});
  scheduler.add({.id = 2, .prompt = 10});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{1, 0, 0, 20, true, false}})) << "nobody waits for a token";
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{1, 0, 20, 30, false, true}, {2, 1, 0, 10, true, true}}));
  scheduler.remove(2);
  scheduler.add({.id = 3, .prompt = 10});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{3, 1, 0, 6, true, false}}));
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{3, 1, 6, 10, false, true}}));
}

// A device on a fake clock: a run takes `pass` and `token` for each token that its length has, a decode `decode`.
struct PacedMachine {
  double pass, token, decode;
  ServingLimits limits{.slots = 3,
                       .cache = 4096,
                       .waiting = 4,
                       .prefill = 512,
                       .hold = Seconds(0.05),
                       .lengths = {16, 64, 256, 512},
                       .rows = {1, 2, 3}};
  FakeClock clock = {};
  Seconds compute(ServingScheduler& scheduler, const ServingStep& step) {
    const Seconds before = clock.now();
    for (const Piece& piece : step.prefill) {
      for (std::int64_t at = piece.begin; at < piece.end;) {
        const std::int64_t count = piece.run > 0 ? std::min(piece.run, piece.end - at) : piece.end - at;
        const Seconds took(pass + token * static_cast<double>(*std::ranges::lower_bound(limits.lengths, count)));
        clock.advance(took);
        scheduler.ran(count, took);
        at += count;
      }
    }
    if (!step.decode.empty()) {
      clock.advance(Seconds(decode));
      scheduler.decoded(std::ssize(step.decode), Seconds(decode));
    }
    return clock.now() - before;
  }
};

// Where a piece of 256 tokens leaves time for one of 64.
TEST(ServingScheduler, what_a_piece_leaves_of_the_time_goes_to_no_other_prompt) {
  PacedMachine machine{8.9e-3, 1.7e-4, 8e-3};
  machine.limits.hold = Seconds(0.1);
  ServingScheduler scheduler(machine.limits);
  scheduler.add({.id = 1, .prompt = 10});
  machine.compute(scheduler, scheduler.next());
  scheduler.add({.id = 2, .prompt = 3000});
  scheduler.add({.id = 3, .prompt = 3000});
  Ids pieces, ended;
  for (int i = 0; i < 60 && ended.size() < 2; ++i) {
    const ServingStep step = scheduler.next();
    for (const Piece& piece : step.prefill) {
      if (pieces.empty() || pieces.back() != piece.id) pieces.push_back(piece.id);
      if (piece.last) ended.push_back(piece.id);
    }
    machine.compute(scheduler, step);
  }
  EXPECT_EQ(pieces, (Ids{2, 3})) << "one after the other";
  EXPECT_EQ(ended, (Ids{2, 3}));
}

TEST(ServingScheduler, a_stream_beside_a_long_prompt_is_held_up_no_longer_than_it_may) {
  const struct {
    double pass, token, decode;
    double held, first;  // the longest step, and until the prompt has its first token
  } machines[] = {
      {2e-3, 6e-4, 4e-3, 0.05, 1.45},   // 1,600 tokens/s
      {3e-3, 1.5e-4, 4e-3, 0.05, 0.4},  // 6,000
      {2e-2, 2e-5, 2e-2, 0.05, 0.5},    // what takes time is to read the weights
      {1e-4, 1e-6, 1e-4, 0.05, 0.01},
      {4e-2, 2e-5, 4e-2, 0.091, 0.65},  // nothing is short enough, and the longest takes hardly longer
      {2e-2, 4e-3, 2e-2, 0.11, 13.1},   // the same, and it takes much longer: the least at a time, but always some
  };
  for (const auto& [pass, token, decode, held, first] : machines) {
    SCOPED_TRACE(token);
    PacedMachine machine{pass, token, decode};
    ServingScheduler scheduler(machine.limits);
    scheduler.add({.id = 1, .prompt = 10});
    machine.compute(scheduler, scheduler.next());
    scheduler.add({.id = 2, .prompt = 2000});
    const Seconds asked = machine.clock.now();
    for (bool done = false; !done;) {
      const ServingStep step = scheduler.next();
      ASSERT_EQ(ids(step.decode), Ids{1});
      ASSERT_EQ(ids(step.prefill), Ids{2});
      EXPECT_LE(machine.compute(scheduler, step).count(), held + 1e-9);
      done = step.prefill[0].last;
    }
    EXPECT_LE((machine.clock.now() - asked).count(), first);
  }
}

TEST(ServingScheduler, the_time_of_a_step_is_kept_only_where_somebody_waits_for_it) {
  PacedMachine machine{2e-3, 6e-4, 4e-3};
  ServingScheduler scheduler(machine.limits);
  scheduler.add({.id = 1, .prompt = 10});
  scheduler.add({.id = 2, .prompt = 600});
  ServingStep step = scheduler.next();
  EXPECT_EQ(ids(step.prefill), Ids{1}) << "it has a token and waits for the next, and no times are known";
  machine.compute(scheduler, step);
  for (step = scheduler.next(); !step.prefill.empty(); step = scheduler.next()) machine.compute(scheduler, step);
  EXPECT_EQ(scheduler.beside(), 64) << "40.4 of 46 ms";
  scheduler.remove(1);
  scheduler.remove(2);
  scheduler.add({.id = 3, .prompt = 600});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{3, 0, 0, 512, true, false}})) << "nobody waits";
  scheduler.remove(3);
  scheduler.add({.id = 4, .prompt = 10});
  scheduler.add({.id = 5, .prompt = 600});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{4, 0, 0, 10, true, true}, {5, 1, 0, 64, true, false, 64}}));
  step = scheduler.next();
  EXPECT_EQ(step.prefill, (Pieces{{5, 1, 64, 128, false, false, 64}}));
  EXPECT_EQ(ids(step.decode), Ids{4});
}

TEST(ServingScheduler, an_encoder_takes_whole_prompts) {
  ServingScheduler scheduler({.slots = 8, .cache = 100, .waiting = 8, .prefill = 20, .whole_prompts = true});
  for (const auto& [id, prompt] : {std::pair(1, 50), std::pair(2, 10), std::pair(3, 10), std::pair(4, 10)})
    scheduler.add({.id = static_cast<std::uint64_t>(id), .prompt = prompt});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{1, 0, 0, 50, true, true}}));
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{2, 1, 0, 10, true, true}, {3, 2, 0, 10, true, true}}));
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{4, 3, 0, 10, true, true}}));
}

TEST(ServingScheduler, a_full_queue_and_a_long_prompt_are_refused) {
  ServingScheduler none({.slots = 1, .cache = 10, .waiting = 0});
  EXPECT_EQ(none.add({.id = 1, .prompt = 11}), Admission::too_long);
  EXPECT_EQ(none.add({.id = 1, .prompt = 10}), Admission::accepted) << "a slot is free: it does not wait";
  EXPECT_EQ(none.add({.id = 2}), Admission::queue_full);
  none.next();
  EXPECT_EQ(none.add({.id = 2}), Admission::queue_full);
  none.remove(1);
  EXPECT_EQ(none.add({.id = 2}), Admission::accepted);

  ServingScheduler two({.slots = 1, .cache = 10, .waiting = 2});
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(two.add({.id = id}), Admission::accepted);
  EXPECT_EQ(two.add({.id = 4}), Admission::queue_full);
  two.remove(2);
  EXPECT_EQ(two.add({.id = 4}), Admission::accepted) << "one that waited has left";
}

TEST(ServingScheduler, priority_goes_first_and_then_the_key_that_was_served_least) {
  ServingScheduler scheduler({.slots = 1, .cache = 1000, .waiting = 100});
  for (std::uint64_t id = 1; id <= 4; ++id) scheduler.add({.id = id, .key = "many", .prompt = 100});
  scheduler.add({.id = 5, .key = "few", .prompt = 100});
  scheduler.add({.id = 6, .key = "many", .prompt = 100, .priority = 1});
  Ids order;
  for (ServingStep step = scheduler.next(); !step.empty(); step = scheduler.next()) {
    for (const std::uint64_t id : ids(step.prefill)) {
      order.push_back(id);
      scheduler.remove(id);
    }
  }
  EXPECT_EQ(order, (Ids{6, 5, 1, 2, 3, 4})) << "four requests of one key do not stand before the first of another";
}

TEST(ServingScheduler, an_idle_key_does_not_save_up) {
  ServingScheduler scheduler({.slots = 1, .cache = 1000, .waiting = 100});
  for (std::uint64_t id = 1; id <= 6; ++id) scheduler.add({.id = id, .key = "steady", .prompt = 100});
  for (std::uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(ids(scheduler.next().prefill), Ids{id});
    scheduler.remove(id);
  }
  for (std::uint64_t id = 11; id <= 13; ++id) scheduler.add({.id = id, .key = "late", .prompt = 100});
  Ids order;
  for (int i = 0; i < 4; ++i) {
    const Ids begun = ids(scheduler.next().prefill);
    ASSERT_EQ(begun.size(), 1U);
    order.push_back(begun[0]);
    scheduler.remove(begun[0]);
  }
  EXPECT_EQ(order, (Ids{4, 11, 5, 12})) << "they take turns";
}

TEST(ServingScheduler, a_request_may_ask_for_small_pieces_of_its_prompt) {
  ServingScheduler scheduler({.slots = 2, .cache = 40, .waiting = 4, .prefill = 10});
  scheduler.add({.id = 1, .prompt = 9, .piece = 4});
  scheduler.add({.id = 2, .prompt = 9});
  EXPECT_EQ(scheduler.next().prefill, (std::vector<ServingStep::Piece>{{1, 0, 0, 4, true, false}}));
  EXPECT_EQ(scheduler.next().prefill, (std::vector<ServingStep::Piece>{{1, 0, 4, 8, false, false}}));
  EXPECT_EQ(scheduler.next().prefill,
            (std::vector<ServingStep::Piece>{{1, 0, 8, 9, false, true}, {2, 1, 0, 9, true, true}}));
}

TEST(ServingScheduler, drafts_are_as_many_as_a_step_and_a_cache_have_room_for) {
  ServingScheduler scheduler({.slots = 2, .cache = 16, .waiting = 4, .prefill = 10, .drafts = 3});
  scheduler.add({.id = 1, .prompt = 10});
  EXPECT_EQ(scheduler.next().room, 0) << "nothing is decoded";
  const auto drafted = [&](std::int64_t wanted, std::int64_t right) {
    ServingStep step = scheduler.next();
    scheduler.draft(step, 0, wanted);
    scheduler.keep(step.decode.at(0), right);
    return std::pair(step.decode[0].drafts, step.room);
  };
  EXPECT_EQ(drafted(5, 1), std::pair(3L, 0L));
  EXPECT_EQ(drafted(2, 0), std::pair(2L, 1L));
  EXPECT_EQ(drafted(3, 0), std::pair(2L, 1L)) << "14 of 16 tokens have been computed";
  scheduler.add({.id = 2, .prompt = 10});
  EXPECT_EQ(scheduler.next().room, 0) << "a whole piece of a prompt is computed beside";
  scheduler.remove(1);
  EXPECT_EQ(scheduler.next().room, 3);
  scheduler.add({.id = 3, .prompt = 9});
  EXPECT_EQ(scheduler.next().room, 1) << "a token of ten is left";
  EXPECT_EQ(scheduler.next().room, 2) << "two sequences";
}

// Random events: no slot is given twice, none is lost, every accepted request runs exactly once, and the queue is bounded.
TEST(ServingScheduler, random_events_lose_no_slot_and_no_request) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::uint64_t draws = 0;
    const auto draw = [&](std::uint32_t below) { return philox(seed, philox_counter(draws++, 0))[0] % below; };
    const ServingLimits limits{.slots = 1 + draw(5),
                               .cache = 50,
                               .waiting = draw(6),
                               .prefill = 1 + draw(40),
                               .prefill_beside = draw(2) == 0 ? 1 + draw(40) : 0,
                               .whole_prompts = draw(4) == 0};
    ServingScheduler scheduler(limits);
    std::set<std::uint64_t> accepted, begun, gone;
    std::map<std::uint64_t, std::int64_t> slot_of, prompts, computed;
    std::uint64_t last = 0;
    const auto forget = [&](std::uint64_t id) {
      ASSERT_TRUE(scheduler.remove(id));
      slot_of.erase(id);
      gone.insert(id);
    };
    for (int event = 0; event < 300; ++event) {
      const std::uint32_t kind = draw(4);
      if (kind == 0) {
        const ServingRequest request{++last, std::to_string(draw(3)), 1 + draw(60), 5, draw(2)};
        const Admission admission = scheduler.add(request);
        EXPECT_EQ(admission == Admission::too_long, request.prompt > 50);
        if (admission == Admission::accepted) accepted.insert(last);
        prompts[last] = request.prompt;
      } else if (kind == 1 && !accepted.empty()) {
        const std::uint64_t id = *std::next(accepted.begin(), draw(static_cast<std::uint32_t>(accepted.size())));
        if (!gone.contains(id)) forget(id);
      } else {
        const std::map<std::uint64_t, std::int64_t> before = slot_of;
        const ServingStep step = scheduler.next();
        std::int64_t tokens = 0;
        for (const ServingStep::Sequence& placed : step.decode) {
          EXPECT_EQ(before.at(placed.id), placed.slot) << "a sequence stays in its slot";
          EXPECT_EQ(computed.at(placed.id), prompts.at(placed.id));
        }
        for (const Piece& piece : step.prefill) {
          EXPECT_TRUE(accepted.contains(piece.id) && !gone.contains(piece.id));
          EXPECT_EQ(begun.insert(piece.id).second, piece.begin == 0) << "once";
          EXPECT_EQ(piece.begin, computed[piece.id]) << "in order";
          EXPECT_LT(piece.begin, piece.end);
          EXPECT_EQ(piece.last, piece.end == prompts.at(piece.id));
          EXPECT_TRUE(piece.last || !limits.whole_prompts);
          if (piece.begin > 0) { EXPECT_EQ(before.at(piece.id), piece.slot); }
          for (const auto& [other, taken] : slot_of) EXPECT_TRUE(taken != piece.slot || other == piece.id) << other;
          slot_of[piece.id] = piece.slot;
          computed[piece.id] = piece.end;
          tokens += piece.end - piece.begin;
        }
        const bool beside = limits.prefill_beside > 0 && !step.decode.empty() && !limits.whole_prompts;
        const std::int64_t most = beside ? std::min(limits.prefill, limits.prefill_beside) : limits.prefill;
        EXPECT_TRUE(tokens <= most || (limits.whole_prompts && step.prefill.size() == 1)) << tokens;
        EXPECT_LE(static_cast<std::int64_t>(slot_of.size()), limits.slots);
      }
      EXPECT_EQ(scheduler.running(), static_cast<std::int64_t>(slot_of.size()));
      EXPECT_LE(scheduler.waiting(), limits.waiting + limits.slots);
    }
    for (int step = 0; scheduler.waiting() + scheduler.running() > 0; ++step) {
      ASSERT_LT(step, 1000) << "everything comes to its end";
      for (const Piece& piece : scheduler.next().prefill) {
        begun.insert(piece.id);
        slot_of[piece.id] = piece.slot;
      }
      const auto some = slot_of;
      for (const auto& [id, slot] : some) forget(id);
    }
    for (const std::uint64_t id : accepted) EXPECT_TRUE(begun.contains(id) || gone.contains(id));
    EXPECT_TRUE(scheduler.next().empty());
  }
}

}  // namespace
}  // namespace systole

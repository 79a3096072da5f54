#include "describe/serving/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ground/base/error.h"
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

TEST(ServingScheduler, drafts_take_pages_that_nobody_uses_and_give_back_those_of_wrong_ones) {
  ServingScheduler scheduler(
      {.slots = 2, .cache = 12, .waiting = 2, .prefill = 20, .pages = 4, .page = 4, .drafts = 3});
  scheduler.add({.id = 1, .prompt = 7});
  scheduler.next();
  ServingStep step = scheduler.next();  // its eighth token
  EXPECT_TRUE(step.tables.empty());
  scheduler.draft(step, 0, 3);
  EXPECT_EQ(step.decode[0].drafts, 3);
  ASSERT_EQ(step.tables.size(), 1U);
  EXPECT_EQ(step.tables[0].pages.size(), 3U);
  EXPECT_EQ(scheduler.pages_used(), 0.75);
  scheduler.keep(step.decode[0], 0);
  EXPECT_EQ(scheduler.pages_used(), 0.5);
  scheduler.add({.id = 2, .prompt = 3});
  step = scheduler.next();
  EXPECT_EQ(scheduler.pages_used(), 1) << "its ninth token, and the prompt of another";
  step = scheduler.next();
  scheduler.draft(step, 1, 2);
  EXPECT_EQ(step.decode[1].drafts, 0) << "its page is full";
  scheduler.draft(step, 0, 3);
  EXPECT_EQ(step.decode[0].drafts, 2) << "as many as may be beside another";
  EXPECT_EQ(scheduler.preemptions(), 0);
}

std::vector<PageHash> hashes_of(const std::string& text, std::size_t page) {
  std::vector<PageHash> hashes;
  for (std::size_t end = page; end <= text.size(); end += page) hashes.push_back(text.substr(0, end));
  return hashes;
}

TEST(ServingScheduler, a_shared_beginning_is_computed_once) {
  ServingScheduler scheduler({.slots = 3, .cache = 12, .waiting = 3, .pages = 9, .page = 4});
  scheduler.add({.id = 1, .prompt = 10, .hashes = hashes_of("abcdefghij", 4)});
  scheduler.add({.id = 2, .prompt = 9, .hashes = hashes_of("abcdefghk", 4)});
  scheduler.add({.id = 3, .prompt = 8, .hashes = hashes_of("abcdefgh", 4)});
  const ServingStep step = scheduler.next();
  EXPECT_EQ(step.prefill, (Pieces{{1, 0, 0, 10, true, true}, {2, 1, 8, 9, true, true}, {3, 2, 4, 8, true, true}}))
      << "the last token is computed in any case, in a page of its own";
  ASSERT_EQ(step.tables.size(), 3U);
  EXPECT_EQ(step.tables[0].pages, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(step.tables[1].pages, (std::vector<std::int32_t>{0, 1, 3}));
  EXPECT_EQ(step.tables[2].pages, (std::vector<std::int32_t>{0, 4, 5}));
  for (const std::uint64_t id : {1, 2, 3}) scheduler.remove(id);
  EXPECT_EQ(scheduler.pages_used(), 0);
  scheduler.add({.id = 4, .prompt = 9, .hashes = hashes_of("abcdefghz", 4)});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{4, 0, 8, 9, true, true}}))
      << "nobody uses the pages, and they are known";
}

TEST(ServingScheduler, without_a_free_page_the_one_that_began_last_is_computed_again) {
  ServingScheduler scheduler({.slots = 3, .cache = 8, .waiting = 3, .pages = 4, .page = 2});
  scheduler.add({.id = 1, .prompt = 3});
  scheduler.add({.id = 2, .prompt = 3});
  scheduler.add({.id = 3, .prompt = 3});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{1, 0, 0, 3, true, true}, {2, 1, 0, 3, true, true}})) << "4 pages";
  EXPECT_EQ(ids(scheduler.next().decode), (Ids{1, 2}));
  ServingStep step = scheduler.next();
  EXPECT_EQ(ids(step.decode), Ids{1}) << "it needs a third page";
  EXPECT_EQ(scheduler.preemptions(), 1);
  EXPECT_EQ(scheduler.waiting(), 2);
  EXPECT_TRUE(step.prefill.empty()) << "there are fewer pages than it had";
  scheduler.next();
  scheduler.remove(1);
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{2, 0, 0, 5, true, true}}))
      << "its prompt, the token of the prefill, and one more";

  ServingScheduler urgent({.slots = 2, .cache = 8, .waiting = 3, .pages = 4, .page = 2});
  urgent.add({.id = 1, .prompt = 3});
  urgent.next();
  urgent.add({.id = 2, .prompt = 3, .priority = 1});
  urgent.next();
  EXPECT_EQ(ids(urgent.next().decode), Ids{2}) << "the first gives way, although it began first";
}

// Random events: no slot is given twice, none is lost, every accepted request runs exactly once, and the queue is bounded.
TEST(ServingScheduler, while_it_holds_none_begins_and_those_that_have_begun_come_to_their_end) {
  ServingScheduler scheduler({.slots = 3, .cache = 8, .waiting = 3, .pages = 4, .page = 2});
  scheduler.add({.id = 1, .prompt = 3});
  scheduler.add({.id = 2, .prompt = 3, .hashes = hashes_of("ab", 2)});
  scheduler.next();
  scheduler.hold(true);
  scheduler.add({.id = 3, .prompt = 1, .priority = 5});
  EXPECT_TRUE(scheduler.next().prefill.empty());
  scheduler.next();
  EXPECT_EQ(scheduler.preemptions(), 1) << "the second has no page for its fifth token";
  EXPECT_EQ(scheduler.begun(), 2);
  scheduler.next();
  scheduler.remove(1);
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{2, 0, 2, 5, true, true}})) << "it goes on, in spite of the priority";
  EXPECT_EQ(scheduler.begun(), 1);
  EXPECT_THROW(scheduler.forget_pages(), Failure);
  scheduler.remove(2);
  EXPECT_TRUE(scheduler.next().empty());
  EXPECT_EQ(scheduler.begun(), 0);
  EXPECT_EQ(scheduler.waiting(), 1);
  scheduler.forget_pages();
  scheduler.hold(false);
  scheduler.add({.id = 4, .prompt = 3, .hashes = hashes_of("ab", 2)});
  EXPECT_EQ(scheduler.next().prefill, (Pieces{{3, 0, 0, 1, true, true}, {4, 1, 0, 3, true, true}}))
      << "the page of the second is not known any more";
}

TEST(ServingScheduler, random_events_lose_no_slot_and_no_request) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::uint64_t draws = 0;
    const auto draw = [&](std::uint32_t below) { return philox(seed, philox_counter(draws++, 0))[0] % below; };
    const ServingLimits limits{1 + draw(5), 50, draw(6), 1 + draw(40), draw(4) == 0};
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
        EXPECT_TRUE(tokens <= limits.prefill || (limits.whole_prompts && step.prefill.size() == 1)) << tokens;
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

// A cache as steps leave it: of each place of each page, the text up to its token.
class FakeCache {
 public:
  FakeCache(const ServingLimits& limits)
      : page_(limits.page), places_(static_cast<std::size_t>(limits.pages * limits.page)) {}
  void set_table(const ServingStep::Table& table) { tables_[table.slot] = table.pages; }
  // Computes the token at `at` of a text, which needs all tokens before it.
  void compute(std::int64_t slot, const std::string& text, std::int64_t at) {
    place(slot, at) = text.substr(0, static_cast<std::size_t>(at) + 1);
    for (std::int64_t i = 0; i < at; ++i)
      ASSERT_EQ(place(slot, i), text.substr(0, static_cast<std::size_t>(i) + 1))
          << "of " << text << " in slot " << slot;
  }

 private:
  std::string& place(std::int64_t slot, std::int64_t at) {
    return places_[static_cast<std::size_t>(tables_.at(slot).at(static_cast<std::size_t>(at / page_)) * page_ +
                                            at % page_)];
  }
  std::int64_t page_;
  std::vector<std::string> places_;
  std::map<std::int64_t, std::vector<std::int32_t>> tables_;
};

// Random texts with common beginnings, few pages: whenever a token is computed, the cache has the tokens before it,
// whoever computed them, and every request that is not removed gets all its tokens.
TEST(ServingScheduler, random_events_leave_every_sequence_its_own_tokens) {
  std::int64_t preemptions = 0, shared = 0, accepted = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::uint64_t draws = 0;
    const auto draw = [&](std::uint32_t below) { return philox(seed, philox_counter(draws++, 1))[0] % below; };
    ServingLimits limits{.slots = 1 + draw(5), .cache = 24, .waiting = 4, .prefill = 1 + draw(30)};
    limits.page = 1 + draw(7);
    limits.pages = (24 + limits.page - 1) / limits.page + draw(12);
    limits.drafts = draw(5);
    ServingScheduler scheduler(limits);
    FakeCache cache(limits);
    struct Live {
      std::string text;
      std::size_t wanted;  // its length at the end
    };
    std::map<std::uint64_t, Live> live;
    std::uint64_t last = 0;
    const auto drawn = [&] { return static_cast<char>('a' + draw(2)); };
    const auto take_token = [&](std::uint64_t id) {
      Live& sequence = live.at(id);
      sequence.text += drawn();
      if (sequence.text.size() < sequence.wanted) return;
      scheduler.remove(id);
      live.erase(id);
    };
    // Drafts are drawn as tokens are, so that about half of them are right.
    const auto decode = [&](const ServingStep::Sequence& placed) {
      std::string text = live.at(placed.id).text;
      const std::size_t next = text.size();
      for (std::int64_t row = 0; row <= placed.drafts; ++row) {
        cache.compute(placed.slot, text, static_cast<std::int64_t>(text.size()) - 1);
        text += drawn();
      }
      for (std::int64_t right = 0;; ++right) {
        const std::size_t at = next + static_cast<std::size_t>(right);
        take_token(placed.id);
        if (!live.contains(placed.id)) return;
        if (right < placed.drafts && live.at(placed.id).text[at] == text[at]) continue;
        accepted += right;
        return scheduler.keep(placed, right);
      }
    };
    const auto one_step = [&] {
      ServingStep step = scheduler.next();
      for (std::size_t i = 0; i < step.decode.size(); ++i) scheduler.draft(step, i, draw(6));
      for (const ServingStep::Table& table : step.tables) cache.set_table(table);
      for (const Piece& piece : step.prefill) {
        const std::string text = live.at(piece.id).text;
        if (piece.first) shared += piece.begin;
        for (std::int64_t at = piece.begin; at < piece.end; ++at) cache.compute(piece.slot, text, at);
        if (piece.last) {
          ASSERT_EQ(piece.end, static_cast<std::int64_t>(text.size()));
          take_token(piece.id);
        }
      }
      for (const ServingStep::Sequence& placed : step.decode) decode(placed);
    };
    for (int event = 0; event < 200; ++event) {
      if (draw(3) == 0) {
        std::string text;
        for (std::uint32_t n = 1 + draw(20); n > 0; --n) text += n > 4 ? 'a' : drawn();
        const auto size = static_cast<std::size_t>(limits.page);
        const ServingRequest request{++last,  std::to_string(draw(2)), static_cast<std::int64_t>(text.size()), 5,
                                     draw(2), hashes_of(text, size)};
        if (scheduler.add(request) == Admission::accepted)
          live[last] = {text, std::min<std::size_t>(24, text.size() + 1 + draw(10))};
      } else if (draw(8) == 0 && !live.empty()) {
        const std::uint64_t id = std::next(live.begin(), draw(static_cast<std::uint32_t>(live.size())))->first;
        EXPECT_TRUE(scheduler.remove(id));
        live.erase(id);
      } else {
        one_step();
      }
      if (HasFatalFailure()) return;
    }
    for (int step = 0; !live.empty(); ++step) {
      ASSERT_LT(step, 2000) << "everything comes to its end";
      one_step();
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(scheduler.pages_used(), 0);
    EXPECT_EQ(scheduler.running() + scheduler.waiting(), 0);
    preemptions += scheduler.preemptions();
  }
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(shared, 1000);
  EXPECT_GT(accepted, 300);
}

}  // namespace
}  // namespace systole

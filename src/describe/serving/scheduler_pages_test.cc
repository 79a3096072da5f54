// The scheduler with a pool of pages: shared beginnings, preemption, weights that change, and drafts.

#include <gtest/gtest.h>

#include <map>

#include "describe/serving/scheduler.h"
#include "ground/base/error.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

using Piece = ServingStep::Piece;
using Pieces = std::vector<Piece>;
using Sequences = std::vector<ServingStep::Sequence>;

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
  EXPECT_EQ(scheduler.next().decode, (Sequences{{1, 0}, {2, 1}}));
  ServingStep step = scheduler.next();
  EXPECT_EQ(step.decode, (Sequences{{1, 0}})) << "it needs a third page";
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
  EXPECT_EQ(urgent.next().decode, (Sequences{{2, 1}})) << "the first gives way, although it began first";
}

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

// Random texts with common beginnings, few pages, pieces by random times: whenever a token is computed, the cache has the
// tokens before it, whoever computed them, and every request that is not removed gets all its tokens.
TEST(ServingScheduler, random_events_leave_every_sequence_its_own_tokens) {
  std::int64_t preemptions = 0, shared = 0, accepted = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::uint64_t draws = 0;
    const auto draw = [&](std::uint32_t below) { return philox(seed, philox_counter(draws++, 1))[0] % below; };
    ServingLimits limits{.slots = 1 + draw(5), .cache = 24, .waiting = 4, .prefill = 1 + draw(30)};
    limits.page = 1 + draw(7);
    limits.pages = (24 + limits.page - 1) / limits.page + draw(12);
    limits.drafts = draw(5);
    limits.lengths = limits.rows = {1, 2, 4, 8};
    limits.hold = Seconds(seed % 2 * (1 + draw(8)));  // of half of them
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
        for (std::int64_t at = piece.begin; piece.run > 0 && at < piece.end; at += piece.run)
          scheduler.ran(std::min(piece.run, piece.end - at), Seconds(1 + draw(4)));
        if (piece.last) {
          ASSERT_EQ(piece.end, static_cast<std::int64_t>(text.size()));
          take_token(piece.id);
        }
      }
      if (!step.decode.empty()) scheduler.decoded(std::ssize(step.decode), Seconds(draw(3)));
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

// Answers with drafts are those without, bit for bit, and come in fewer steps where text repeats itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "execute/serve/testing/serving_loop_fixture.h"

namespace systole {
namespace {

class ServingLoopDrafts : public ServingLoopPages {
 protected:
  std::unique_ptr<Engine> drafting(std::int64_t slots, std::int64_t pages = 0) {
    return sharp_engine(*model_, *device_, {.slots = slots, .pages = pages, .drafts = 7});
  }
  // One request more is added before each step.
  static std::vector<Answer> answers_of(ServingLoop& loop, const std::vector<SequenceRequest>& requests) {
    std::vector<Answer> answers(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      loop.add(requests[i], into(answers[i])).value();
      loop.step().value();
    }
    while (loop.step().value()) {}
    return answers;
  }
  static SequenceRequest drawn_from(const Tokens& tokens, Tokens prompt) {
    SequenceRequest asked = request(1, std::move(prompt));
    for (std::int32_t token = 0; token < 13; ++token) {
      if (std::ranges::find(tokens, token) == tokens.end()) asked.sampling.never.push_back(token);
    }
    return asked;
  }
  // Of two tokens, each about as likely as the other: some drafts are right and some are not.
  static SequenceRequest coins(std::uint64_t id, Tokens prompt) {
    SequenceRequest asked = drawn_from({4, 5}, std::move(prompt));
    asked.id = asked.draw = asked.sampling.seed = id;
    asked.sampling.temperature = 50;
    asked.max_tokens = 40;
    asked.logprobs = 3;
    return asked;
  }
  static Tokens thrice(const Tokens& tokens) {
    Tokens all;
    for (int i = 0; i < 3; ++i) all.insert(all.end(), tokens.begin(), tokens.end());
    return all;
  }
  // With the options that depend on what a sequence has, and those that cut.
  static std::vector<SequenceRequest> requests_of_every_kind() {
    std::vector<SequenceRequest> all;
    const auto add = [&](const std::function<void(SequenceRequest&)>& change) {
      const std::uint64_t id = all.size();
      SequenceRequest asked = request(id, thrice(text(6, id)));
      asked.max_tokens = 24;
      asked.logprobs = 2;
      change(asked);
      all.push_back(std::move(asked));
    };
    add([](SequenceRequest& asked) { asked.sampling = {.temperature = 0}; });
    add([](SequenceRequest& asked) { asked.sampling.temperature = 1; });
    add([](SequenceRequest& asked) {
      asked.sampling.presence_penalty = 0.5;
      asked.sampling.frequency_penalty = 1;
      asked.sampling.repetition_penalty = 1.3;
    });
    add([](SequenceRequest& asked) {
      asked.sampling.min_p = 0.01;
      asked.sampling.top_k = 5;
      asked.sampling.top_p = 0.9;
      asked.sampling.logit_bias = {{7, 2}};
    });
    add([](SequenceRequest& asked) { asked.min_tokens = 20; });
    add([](SequenceRequest& asked) { asked.grammar = digits("(12[0-9]){6}"); });
    return all;
  }
};

TEST_F(ServingLoopDrafts, AnswersAreInvariant_under_every_option) {
  std::int64_t drafted = 0;
  for (const SequenceRequest& asked : requests_of_every_kind()) {
    const auto own = drafting(1);
    ServingLoop loop(*own, {});
    EXPECT_EQ(answers_of(loop, {asked})[0], alone(asked)) << asked.id;
    drafted += loop.counts().drafted;
  }
  EXPECT_GT(drafted, 0);
}

TEST_F(ServingLoopDrafts, AnswersAreInvariant_in_company_with_few_pages) {
  std::vector<SequenceRequest> requests = requests_of_every_kind();
  for (std::uint64_t id = requests.size(); id < 9; ++id) requests.push_back(coins(id, text(20, id)));
  const auto own = drafting(3, 7);
  ServingLoop loop(*own, {.waiting = 9, .prefill = 20});
  const std::vector<Answer> answers = answers_of(loop, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers[i], alone(requests[i])) << i;
  EXPECT_GT(loop.counts().accepted, 0);
  EXPECT_EQ(loop.pages_used(), 0);
}

TEST_F(ServingLoopDrafts, AnswersAreInvariant_under_preemption) {
  std::vector<SequenceRequest> requests;
  for (std::uint64_t id = 0; id < 3; ++id) requests.push_back(coins(id, text(20, id)));
  const auto own = drafting(3, 7);
  ServingLoop loop(*own, {.waiting = 3});
  const std::vector<Answer> answers = answers_of(loop, requests);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(answers[i], alone(requests[i])) << i;
  EXPECT_GE(loop.counts().preemptions, 1);
  EXPECT_GT(loop.counts().accepted, 0);
  EXPECT_EQ(loop.pages_used(), 0);
}

TEST_F(ServingLoopDrafts, AnswersAreInvariant_with_a_shared_beginning_of_which_no_page_has_drafts) {
  std::vector<SequenceRequest> requests;
  for (std::uint64_t id = 0; id < 4; ++id) {
    Tokens prompt = thrice(text(16, 1));
    const Tokens own = text(4, 10 + id);
    prompt.insert(prompt.end(), own.begin(), own.end());
    requests.push_back(coins(id, prompt));
    requests.back().max_tokens = 20;
  }
  const auto own = drafting(2);
  ServingLoop loop(*own, {.waiting = 4, .prefill = 20});
  const std::vector<Answer> answers = answers_of(loop, requests);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(answers[i], alone(requests[i])) << i;
  EXPECT_EQ(loop.counts().cached, 3 * 48);
  EXPECT_GT(loop.counts().accepted, 0);
}

TEST_F(ServingLoopDrafts, some_are_right_and_some_are_not) {
  const SequenceRequest asked = coins(3, {4, 5});
  const auto own = drafting(1);
  ServingLoop loop(*own, {});
  EXPECT_EQ(answers_of(loop, {asked})[0], alone(asked));
  EXPECT_GT(loop.counts().accepted, 0);
  EXPECT_LT(loop.counts().accepted, loop.counts().drafted);
}

TEST_F(ServingLoopDrafts, a_repetition_takes_a_step_for_eight_tokens) {
  SequenceRequest asked = drawn_from({4}, {4, 4, 4});
  asked.max_tokens = 33;
  const auto own = drafting(1);
  ServingLoop loop(*own, {});
  Answer answer;
  loop.add(asked, into(answer)).value();
  std::int64_t steps = 0;
  while (loop.step().value()) ++steps;
  EXPECT_EQ(answer, (Answer{Tokens(33, 4), SequenceEnd::max_tokens, {}}));
  EXPECT_EQ(steps, 5) << "of the prompt, with a token, and four of eight";
  EXPECT_EQ(loop.counts(), (ServingLoop::Counts{3, 0, 0, 28, 28}));
}

TEST_F(ServingLoopDrafts, an_answer_ends_within_drafts_where_it_would_without) {
  const auto own = drafting(1);
  ServingLoop loop(*own, {});
  for (std::int64_t count = 1; count < 12; ++count) {
    SequenceRequest cut = drawn_from({4}, {4, 4, 4});
    cut.max_tokens = count;
    EXPECT_EQ(answers_of(loop, {cut})[0],
              (Answer{Tokens(static_cast<std::size_t>(count), 4), SequenceEnd::max_tokens, {}}));
    SequenceRequest stopped = drawn_from({4, 2}, {4, 4, 4});
    stopped.sampling.logit_bias = {{2, 100}};
    stopped.min_tokens = count;
    stopped.max_tokens = 40;
    EXPECT_EQ(answers_of(loop, {stopped})[0],
              (Answer{Tokens(static_cast<std::size_t>(count), 4), SequenceEnd::stop, {}}));
  }
  SequenceRequest whole = request(1, {1, 5});
  whole.grammar = digits("(12){10}");
  whole.max_tokens = 40;
  const std::int64_t accepted = loop.counts().accepted;
  EXPECT_EQ(answers_of(loop, {whole})[0], alone(whole));
  EXPECT_GT(loop.counts().accepted, accepted + 5) << "its form repeats itself";
  SequenceRequest full = drawn_from({4}, {4, 4, 4});
  full.max_tokens = 1000;
  EXPECT_EQ(answers_of(loop, {full})[0], (Answer{Tokens(78, 4), SequenceEnd::cache_full, {}}));
}

TEST_F(ServingLoopDrafts, a_receiver_that_wants_no_more_leaves_its_slot_to_another) {
  const auto own = drafting(1);
  ServingLoop loop(*own, {.waiting = 1});
  SequenceRequest asked = drawn_from({4}, {4, 4, 4});
  asked.id = 7;
  asked.max_tokens = 40;
  std::size_t taken = 0;
  std::optional<SequenceEnd> end;
  loop.add(asked, {[&](std::int32_t) { return ++taken < 5; }, [&](SequenceEnd why) { end = why; }}).value();
  const SequenceRequest other = coins(8, text(20, 8));
  Answer answer;
  loop.add(other, into(answer)).value();
  while (loop.step().value()) {}
  EXPECT_EQ(taken, 5U);
  EXPECT_EQ(end, SequenceEnd::asked);
  EXPECT_EQ(answer, alone(other));
}

TEST_F(ServingLoopDrafts, there_are_none_beside_many_sequences) {
  const auto own = sharp_engine(*model_, *device_, {.slots = 4, .drafts = 2});
  ServingLoop loop(*own, {});
  std::vector<Answer> answers(4);
  for (std::uint64_t id = 0; id < 4; ++id) {
    SequenceRequest asked = drawn_from({4}, {4, 4, 4});
    asked.id = id;
    loop.add(asked, into(answers[id])).value();
  }
  while (loop.step().value()) {}
  for (const Answer& answer : answers) EXPECT_EQ(answer, (Answer{Tokens(5, 4), SequenceEnd::max_tokens, {}}));
  EXPECT_EQ(loop.counts().drafted, 0);
  EXPECT_EQ(answers_of(loop, {drawn_from({4}, {4, 4, 4})})[0].tokens, Tokens(5, 4));
  EXPECT_EQ(loop.counts(), (ServingLoop::Counts{5 * 3, 0, 0, 2, 2})) << "alone it has some";
}

// Has none, and takes 10 ms.
class SlowDrafts : public DraftSource {
 public:
  explicit SlowDrafts(FakeClock& clock) : clock_(clock) {}
  Status draft(std::span<DraftedSequence>, std::int64_t) override {
    clock_.advance(Seconds(0.01));
    return {};
  }

 private:
  FakeClock& clock_;
};

// A prefill of 16 tokens takes 16 ms, a decode with its drafts 11 of 50.
TEST_F(ServingLoopDrafts, the_time_of_making_drafts_is_of_the_decode_and_not_of_a_piece_beside_it) {
  const auto own = drafting(2);
  EngineClock clock(*own);
  SlowDrafts source(clock);
  ServingLoop loop(*own, {.waiting = 2, .hold = Seconds(0.05), .clock = &clock, .drafts = &source});
  std::vector<SequenceRequest> requests = {request(0, text(40, 1)), request(1, text(70, 2))};
  requests[0].stop = requests[1].stop = {};
  requests[0].max_tokens = 20;
  std::vector<Answer> answers(2);
  loop.add(requests[0], into(answers[0])).value();
  for (int step = 0; step < 2; ++step) loop.step().value();
  loop.add(requests[1], into(answers[1])).value();
  std::vector<std::int64_t> pieces;
  while (answers[1].tokens.empty()) {
    const std::int64_t prefilled = loop.counts().prefilled;
    ASSERT_TRUE(loop.step().value());
    pieces.push_back(loop.counts().prefilled - prefilled);
  }
  EXPECT_EQ(pieces, (std::vector<std::int64_t>{16, 32, 22})) << "two runs of 16 tokens fit";
}

}  // namespace
}  // namespace systole

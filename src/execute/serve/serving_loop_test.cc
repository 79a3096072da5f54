#include "execute/serve/serving_loop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "execute/serve/testing/serving_loop_fixture.h"

namespace systole {
namespace {

// Requests come and go at random; each that stays gets the tokens that it gets alone.
TEST_F(ServingLoopTest, AnswersAreInvariant_in_any_company_and_order) {
  std::vector<SequenceRequest> requests;
  std::vector<Answer> expected;
  for (std::uint64_t id = 0; id < 12; ++id) {
    Tokens prompt;
    for (std::uint64_t i = 0; i <= id % 6; ++i)
      prompt.push_back(static_cast<std::int32_t>(philox(7, philox_counter(i, id))[0] % 13));
    requests.push_back(request(id, prompt));
    if (id % 2 == 1) {  // options that depend on what the sequence has
      SamplingOptions& sampling = requests.back().sampling;
      sampling.min_p = 0.01;
      sampling.presence_penalty = 0.5;
      sampling.frequency_penalty = 1;
      sampling.repetition_penalty = 1.3;
      sampling.logit_bias = {{static_cast<std::int32_t>(id), 2}};
      requests.back().min_tokens = 2;
      requests.back().logprobs = 2;
    }
    expected.push_back(alone(requests.back()));
  }
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    // Cut into pieces, beside others, with pages for fewer than there are slots, and with beginnings that are there.
    const auto own = sharp_engine(*model_, *device_, {.slots = 1 + static_cast<std::int64_t>(seed), .pages = 2});
    ServingLoop loop(*own, {.waiting = 100, .prefill = 1 + static_cast<std::int64_t>(seed) * 2});
    std::vector<Answer> answers(requests.size());
    std::size_t removed = 0, added = 0;
    auto draw = [&, n = std::uint64_t{0}](std::uint32_t below) mutable {
      return philox(seed, philox_counter(n++))[0] % below;
    };
    while (added < requests.size() || loop.running() + loop.waiting() > 0) {
      const std::uint32_t kind = draw(3);
      if (kind == 0 && added < requests.size()) {
        loop.add(requests[added], into(answers[added])).value();
        ++added;
      } else if (kind == 1 && added > 0 && draw(4) == 0) {
        const std::uint64_t id = draw(static_cast<std::uint32_t>(added));
        removed += loop.remove(id) ? 1 : 0;
      } else {
        loop.step().value();
      }
    }
    std::size_t whole = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i].end) continue;  // it was removed
      ++whole;
      EXPECT_EQ(answers[i], expected[i]) << "seed " << seed << ", request " << i;
    }
    EXPECT_EQ(whole + removed, requests.size());
    EXPECT_GT(whole, 2U);
  }
}

TEST_F(ServingLoopPages, AnswersAreInvariant_with_a_shared_beginning_and_it_is_computed_once) {
  std::vector<SequenceRequest> requests;
  std::vector<Answer> expected;
  for (std::uint64_t id = 0; id < 4; ++id) {
    Tokens prompt = text(50, 1);
    const Tokens own = text(4, 10 + id);
    prompt.insert(prompt.end(), own.begin(), own.end());
    requests.push_back(request(id, prompt));
    requests.back().logprobs = 3;
    expected.push_back(alone(requests.back()));
  }
  const auto own = engine(2);
  ServingLoop loop(*own, {.waiting = 4, .prefill = 20});
  std::vector<Answer> answers(4);
  for (std::size_t i = 0; i < 4; ++i) loop.add(requests[i], into(answers[i])).value();
  while (loop.step().value()) {}
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(loop.counts(), (ServingLoop::Counts{54 + 3 * 6, 3 * 48, 0})) << "three pages of the beginning are shared";
}

// The same tokens after another beginning have other keys and values.
TEST_F(ServingLoopPages, AnswersAreInvariant_where_pages_of_equal_tokens_have_other_beginnings) {
  const auto own = sharp_engine(*model_, *device_, {.slots = 1, .pages = 20});  // nothing is forgotten
  ServingLoop loop(*own, {.waiting = 3});
  const std::uint64_t beginnings[] = {1, 2, 2};
  std::vector<SequenceRequest> requests;
  std::vector<Answer> answers(3);
  for (std::uint64_t id = 0; id < 3; ++id) {
    Tokens prompt = text(16, beginnings[id]);
    for (const std::uint64_t next : {std::uint64_t{3}, 10 + id}) {
      const Tokens more = text(16, next);
      prompt.insert(prompt.end(), more.begin(), more.end());
    }
    requests.push_back(request(id, prompt));
    requests.back().logprobs = 3;
    loop.add(requests.back(), into(answers[id])).value();
  }
  while (loop.step().value()) {}
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(answers[i], alone(requests[i])) << i;
  EXPECT_EQ(loop.counts().cached, 32) << "of the third, both pages of the second";
}

TEST_F(ServingLoopPages, AnswersAreInvariant_under_preemption) {
  std::vector<SequenceRequest> requests;
  std::vector<Answer> expected, answers(3);
  for (std::uint64_t id = 0; id < 3; ++id) {
    requests.push_back(request(id, text(20, id)));
    requests.back().stop = {};
    requests.back().max_tokens = 40;
    requests.back().logprobs = 3;
    expected.push_back(alone(requests.back()));
  }
  const auto own = sharp_engine(*model_, *device_, {.slots = 3, .pages = 7});
  ServingLoop loop(*own, {.waiting = 3});
  for (std::size_t i = 0; i < 3; ++i) loop.add(requests[i], into(answers[i])).value();
  while (loop.step().value()) {}
  EXPECT_EQ(answers, expected);
  EXPECT_GE(loop.counts().preemptions, 2);
  EXPECT_EQ(loop.counts().cached, 0) << "what a sequence finds of its own, when it goes on, is no hit of its prompt";
  EXPECT_EQ(loop.pages_used(), 0);
}

// With a shared beginning, in company, in pieces and after preemption.
TEST_F(ServingLoopPages, AnswersAreInvariant_with_keys_and_values_in_bf16) {
  std::vector<SequenceRequest> requests;
  std::vector<Answer> expected, answers(3);
  for (std::uint64_t id = 0; id < 3; ++id) {
    Tokens prompt = text(16, 1);
    const Tokens rest = text(6, 10 + id);
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    requests.push_back(request(id, prompt));
    requests.back().stop = {};
    requests.back().max_tokens = 40;
    requests.back().logprobs = 3;
  }
  const Answer in_f32 = alone(requests[0]);
  cache_type_ = DType::bf16;
  for (const SequenceRequest& one : requests) expected.push_back(alone(one));
  EXPECT_FALSE(in_f32 == expected[0]) << "nothing is rounded";
  const auto own = sharp_engine(*model_, *device_, {.slots = 3, .pages = 7, .cache_type = DType::bf16});
  ServingLoop loop(*own, {.waiting = 3, .prefill = 5});
  for (std::size_t i = 0; i < 3; ++i) loop.add(requests[i], into(answers[i])).value();
  while (loop.step().value()) {}
  EXPECT_EQ(answers, expected);
  EXPECT_GT(loop.counts().preemptions, 0);
  EXPECT_GT(loop.counts().cached, 0);
}

TEST_F(ServingLoopPages, AnswersAreInvariant_and_a_stream_waits_for_no_more_of_a_long_prompt_than_fits_its_time) {
  const auto own = engine(2);
  EngineClock clock(*own);
  ServingLoop loop(*own, {.waiting = 2, .hold = Seconds(0.05), .clock = &clock});
  std::vector<SequenceRequest> requests = {request(0, text(4, 1)), request(1, text(70, 2))};
  requests[0].stop = requests[1].stop = {};
  requests[0].max_tokens = 20;
  std::vector<Answer> answers(2);
  loop.add(requests[0], into(answers[0])).value();
  for (int step = 0; step < 2; ++step) loop.step().value();
  loop.add(requests[1], into(answers[1])).value();
  std::vector<std::int64_t> pieces;
  while (answers[1].tokens.empty()) {
    const Seconds before = clock.now();
    const std::int64_t prefilled = loop.counts().prefilled;
    const std::size_t tokens = answers[0].tokens.size();
    ASSERT_TRUE(loop.step().value());
    EXPECT_LE((clock.now() - before).count(), 0.05 + 1e-9);
    EXPECT_EQ(answers[0].tokens.size(), tokens + 1);
    pieces.push_back(loop.counts().prefilled - prefilled);
  }
  EXPECT_EQ(pieces, (std::vector<std::int64_t>{48, 22})) << "three runs of 16 tokens, and two";
  EXPECT_EQ(loop.prefill_beside(), 48);
  while (loop.step().value()) {}
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(answers[i], alone(requests[i])) << i;
}

// The prompt's come first, whatever is in the cache, and are handed out once, however often it is computed.
TEST_F(ServingLoopPages, AnswersAreInvariant_logprobs_of_prompts_are_of_the_logits_after_each_token) {
  std::vector<Answer> answers(4);
  const auto own = sharp_engine(*model_, *device_, {.slots = 3, .pages = 7});
  ServingLoop loop(*own, {.waiting = 4});
  std::vector<SequenceRequest> requests;
  for (std::uint64_t id = 0; id < 4; ++id) {
    requests.push_back(request(id, text(20 + static_cast<std::int64_t>(id % 2), id % 3)));
    requests.back().logprobs = 2;
    requests.back().prompt_logprobs = id != 1;
    requests.back().stop = {};
    requests.back().max_tokens = 40;
    loop.add(requests.back(),
             {.token =
                  [&answers, id](std::int32_t token) {
                    answers[id].tokens.push_back(token);
                    return true;
                  },
              .logprobs = [&answers, id](const TokenLogprobs& each) { answers[id].logprobs.push_back(each); }})
        .value();
  }
  while (loop.step().value()) {}
  EXPECT_GE(loop.counts().preemptions, 2);
  const auto plain = engine(1);
  for (std::size_t id = 0; id < 4; ++id) {
    Tokens all = requests[id].prompt;
    const std::size_t first = requests[id].prompt_logprobs ? 1 : all.size();
    all.insert(all.end(), answers[id].tokens.begin(), answers[id].tokens.end());
    ASSERT_EQ(answers[id].tokens.size(), 40U);
    ASSERT_EQ(answers[id].logprobs.size(), all.size() - first) << id;
    for (std::size_t i = first; i < all.size(); ++i) {
      plain->prefill(0, std::span(all).first(i)).value();
      EXPECT_EQ(answers[id].logprobs[i - first], token_logprobs(plain->logits(0), all[i], 2)) << id << " " << i;
    }
  }
}

TEST_F(ServingLoopTest, a_token_that_ends_a_sequence_has_its_logprob_too_behind_those_of_a_prompt) {
  const auto own = engine(1);
  ServingLoop loop(*own, {});
  SequenceRequest asked = request(1, {3, 4, 5});
  asked.logprobs = 0;
  asked.prompt_logprobs = true;
  for (std::int32_t token = 0; token < 13; ++token) asked.stop.push_back(token);
  Tokens noted;
  std::optional<SequenceEnd> ended;
  loop.add(asked, {[](std::int32_t) { return true; }, [&](SequenceEnd end) { ended = end; },
                   [&](const TokenLogprobs& each) { noted.push_back(each.chosen.token); }})
      .value();
  while (loop.step().value()) {}
  EXPECT_EQ(ended, SequenceEnd::stop);
  ASSERT_EQ(noted.size(), 3U);
  EXPECT_EQ((Tokens{noted[0], noted[1]}), (Tokens{4, 5}));
}

TEST_F(ServingLoopTest, a_receiver_that_wants_no_more_ends_its_own_sequence_alone) {
  const auto own = engine(2);
  ServingLoop loop(*own, {});
  Answer first, second;
  SequenceRequest wanted = request(1, {1, 5});
  wanted.stop = {};
  loop.add(wanted, {[&](std::int32_t token) {
                      first.tokens.push_back(token);
                      return first.tokens.size() < 2;
                    },
                    [&](SequenceEnd end) { first.end = end; }})
      .value();
  wanted.id = 2;
  loop.add(wanted, into(second)).value();
  while (loop.step().value()) {}
  EXPECT_EQ(first.tokens.size(), 2U);
  EXPECT_EQ(first.end, SequenceEnd::asked);
  EXPECT_EQ(second.tokens.size(), 5U);
  EXPECT_EQ(second.end, SequenceEnd::max_tokens);
}

// With a penalty of 100, a token that the sequence has falls from about 100 to about 1, or from about 50 to less.
TEST_F(ServingLoopTest, penalties_see_the_prompt_and_the_answer) {
  SequenceRequest wanted = request(1, {1});
  wanted.sampling = {.temperature = 0, .repetition_penalty = 100, .logit_bias = {{4, 100}, {5, 50}}};
  wanted.max_tokens = 2;
  EXPECT_EQ(alone(wanted).tokens, (Tokens{4, 5}));
  wanted.prompt = {4};
  wanted.max_tokens = 1;
  EXPECT_EQ(alone(wanted).tokens, Tokens{5});
}

TEST_F(ServingLoopTest, logprobs_are_of_the_models_own_logits) {
  SequenceRequest wanted = request(1, {1, 5});
  wanted.sampling = {.temperature = 0};
  wanted.stop = {};
  EXPECT_TRUE(alone(wanted).logprobs.empty()) << "not asked for";
  wanted.logprobs = 13;
  const Answer greedy = alone(wanted);
  ASSERT_EQ(greedy.logprobs.size(), greedy.tokens.size());
  for (std::size_t i = 0; i < greedy.tokens.size(); ++i) {
    EXPECT_EQ(greedy.logprobs[i].chosen.token, greedy.tokens[i]);
    EXPECT_EQ(greedy.logprobs[i].likeliest.at(0), greedy.logprobs[i].chosen);
    double total = 0;
    for (const TokenLogprob& each : greedy.logprobs[i].likeliest) total += std::exp(each.logprob);
    EXPECT_NEAR(total, 1, 1e-12);
  }
  const std::int32_t other = greedy.logprobs[0].likeliest.at(7).token;
  wanted.sampling.logit_bias = {{other, 100}};
  const Answer forced = alone(wanted);
  EXPECT_EQ(forced.logprobs.at(0).chosen, greedy.logprobs[0].likeliest[7]) << "a bias does not change them";
  EXPECT_EQ(forced.logprobs.at(0).likeliest, greedy.logprobs[0].likeliest);
}

TEST_F(ServingLoopTest, options_that_the_model_has_no_token_for_are_refused) {
  const auto own = engine(1);
  ServingLoop loop(*own, {.waiting = 1});
  Answer answer;
  SequenceRequest wanted = request(1, {1});
  wanted.sampling.logit_bias = {{13, 1}};
  EXPECT_EQ(loop.add(wanted, into(answer)).error().key, "logit_bias");
  wanted.sampling.logit_bias = {{12, 1}};
  wanted.min_tokens = 1;
  wanted.sampling.never = {0, 1, 99};
  for (std::int32_t token = 1; token < 13; ++token) wanted.stop.push_back(token);
  EXPECT_EQ(loop.add(wanted, into(answer)).error().key, "min_tokens");
  wanted.sampling.never = {1, 1, 99};
  wanted.max_tokens = 1;
  loop.add(wanted, into(answer)).value();
  while (loop.step().value()) {}
  EXPECT_EQ(answer.tokens, Tokens{0}) << "the only token that does not end it";
}

TEST_F(ServingLoopTest, what_cannot_be_served_is_refused_and_the_rest_goes_on) {
  const auto own = engine(1);
  ServingLoop loop(*own, {.waiting = 1});
  Answer answer, other;
  EXPECT_EQ(loop.add(request(1, {}), into(other)).error().kind, ErrorKind::invalid);
  EXPECT_EQ(loop.add(request(1, Tokens(13, 1)), into(other)).error().kind, ErrorKind::invalid);
  EXPECT_EQ(loop.add(request(1, {13}), into(other)).error().kind, ErrorKind::invalid);
  loop.add(request(1, {1}), into(answer)).value();
  loop.add(request(2, {1}), into(other)).value();
  EXPECT_EQ(loop.add(request(3, {1}), into(other)).error().kind, ErrorKind::busy);
  EXPECT_TRUE(loop.remove(2));
  loop.add(request(3, {1}), into(other)).value();
  while (loop.step().value()) {}
  EXPECT_EQ(answer, alone(request(1, {1})));
  EXPECT_EQ(other, alone(request(3, {1})));
}

TEST_F(ServingLoopTest, an_answer_conforms_to_its_grammar_and_ends_with_it) {
  const auto answer = [&](const char* pattern, const std::function<void(SequenceRequest&)>& change = {}) {
    SequenceRequest asked = request(3, {1, 5});
    asked.grammar = digits(pattern);
    asked.max_tokens = 8;
    if (change) change(asked);
    return alone(asked);
  };
  EXPECT_EQ(answer("123"), (Answer{{4, 5, 6}, SequenceEnd::stop, {}})) << "nothing can follow";
  const Answer even = answer("([02468][13579]){2}");
  EXPECT_EQ(even.tokens.size(), 4U);
  for (std::size_t i = 0; i < even.tokens.size(); ++i)
    EXPECT_EQ(even.tokens[i] % 2, static_cast<std::int32_t>(1 - i % 2)) << i;
  EXPECT_EQ(even.end, SequenceEnd::stop);
  const auto forced = [](SequenceRequest& asked) { asked.sampling.logit_bias[2] = 100; };
  EXPECT_EQ(answer("7{3}8*", forced), (Answer{{10, 10, 10}, SequenceEnd::stop, {}})) << "its end comes once it may";
  EXPECT_EQ(answer("7*", [](SequenceRequest& asked) { asked.sampling.logit_bias[2] = -100; }),
            (Answer{Tokens(8, 10), SequenceEnd::max_tokens, {}}));
  EXPECT_EQ(answer("7?", [](SequenceRequest& asked) { asked.min_tokens = 4; }), (Answer{{10}, SequenceEnd::stop, {}}))
      << "there is no longer one";
  EXPECT_EQ(answer("78", [](SequenceRequest& asked) { asked.sampling.never = {11}; }),
            (Answer{{10}, SequenceEnd::no_token, {}}));
  EXPECT_EQ(answer("()"), (Answer{{}, SequenceEnd::stop, {}}));
}

TEST_F(ServingLoopTest, sequences_share_a_grammar_beside_those_without) {
  const auto own = engine(3);
  ServingLoop loop(*own, {.waiting = 3});
  const auto shared = digits("1[0-9]1");
  std::vector<Answer> answers(3);
  std::vector<SequenceRequest> requests;
  for (std::uint64_t id = 0; id < 3; ++id) {
    requests.push_back(request(id, {1, static_cast<std::int32_t>(id) + 3}));
    if (id != 1) requests.back().grammar = shared;
    loop.add(requests.back(), into(answers[id])).value();
  }
  while (loop.step().value()) {}
  for (std::size_t id = 0; id < 3; ++id) EXPECT_EQ(answers[id], alone(requests[id])) << id;
  EXPECT_EQ(answers[0].tokens.size(), 3U);
}

}  // namespace
}  // namespace systole

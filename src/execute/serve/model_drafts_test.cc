#include "execute/serve/model_drafts.h"

#include <algorithm>

#include "execute/serve/testing/serving_loop_fixture.h"

namespace systole {
namespace {

class ModelDraftsTest : public ServingLoopPages {
 protected:
  std::unique_ptr<Engine> target(std::int64_t slots, std::int64_t pages = 0) {
    return sharp_engine(*model_, *device_, {.slots = slots, .pages = pages, .drafts = 7});
  }
  // Of a model of the target's shape: with seed 3 it is the same.
  ModelDrafts drafts_for(const Engine& target, std::uint64_t seed) {
    return ModelDrafts(sharp_engine(*model_, *device_, draft_engine_options(target), seed), target.vocabulary());
  }
  static SequenceRequest greedy(std::uint64_t id, Tokens prompt, std::int64_t most) {
    SequenceRequest asked = request(id, std::move(prompt));
    asked.sampling = {.temperature = 0};
    asked.max_tokens = most;
    asked.stop = {};
    return asked;
  }
  // Steps.
  static std::int64_t run(ServingLoop& loop) {
    std::int64_t steps = 0;
    while (loop.step().value()) ++steps;
    return steps;
  }
  // By an engine that begins anew.
  static Tokens likeliest_after(Engine& engine, const Tokens& tokens, std::size_t count) {
    Tokens found;
    if (count > 0) engine.prefill(0, tokens).value();
    while (found.size() < count) {
      if (!found.empty()) engine.decode(std::vector<Engine::Next>{{0, found.back()}}).value();
      const std::span<const float> logits = engine.logits(0);
      found.push_back(static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()));
    }
    return found;
  }
  static Tokens drafted(ModelDrafts& drafts, const Tokens& tokens, std::int64_t room) {
    std::vector<DraftedSequence> sequences{{0, tokens, 100}};
    drafts.draft(sequences, room).value();
    return sequences[0].drafts;
  }
};

TEST_F(ModelDraftsTest, of_the_same_model_are_all_right_in_greedy) {
  const SequenceRequest asked = greedy(1, {4, 9, 4}, 33);
  const auto own = target(1);
  ModelDrafts drafts = drafts_for(*own, 3);
  ServingLoop loop(*own, {.drafts = &drafts});
  Answer answer;
  loop.add(asked, into(answer)).value();
  EXPECT_EQ(run(loop), 5) << "of the prompt, with a token, and four of eight";
  EXPECT_EQ(answer, alone(asked));
  EXPECT_EQ(answer.tokens.size(), 33U);
  EXPECT_EQ(loop.counts(), (ServingLoop::Counts{3, 0, 0, 28, 28}));
}

// Greedy, drawn and by a grammar, in company with few pages, so that some give way.
TEST_F(ModelDraftsTest, AnswersAreInvariant_whatever_the_model_drafts) {
  std::vector<SequenceRequest> requests;
  for (std::uint64_t id = 0; id < 9; ++id) {
    requests.push_back(greedy(id, text(20, id), 40));
    if (id % 3 == 1) requests.back().sampling = {.temperature = 1.5, .seed = id};
    if (id % 3 == 2) requests.back().grammar = digits("(12[0-9]){6}");
    requests.back().logprobs = 2;
  }
  for (const std::uint64_t seed : {3U, 4U}) {
    const auto own = target(3, 7);
    ModelDrafts drafts = drafts_for(*own, seed);
    ServingLoop loop(*own, {.waiting = 9, .prefill = 20, .drafts = &drafts});
    std::vector<Answer> answers(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) loop.add(requests[i], into(answers[i])).value();
    run(loop);
    for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers[i], alone(requests[i])) << i;
    EXPECT_GE(loop.counts().preemptions, 1);
    EXPECT_GT(loop.counts().drafted, loop.counts().accepted);
    EXPECT_TRUE(seed != 3 || loop.counts().accepted > 0);
    EXPECT_EQ(loop.pages_used(), 0);
  }
}

TEST_F(ModelDraftsTest, of_a_slot_whose_sequence_was_removed_are_of_the_next_one) {
  const auto own = target(1);
  ModelDrafts drafts = drafts_for(*own, 3);
  ServingLoop loop(*own, {.drafts = &drafts});
  Answer dropped, answer;
  loop.add(greedy(1, text(20, 1), 40), into(dropped)).value();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(loop.step().value());
  EXPECT_TRUE(loop.remove(1));
  const ServingLoop::Counts before = loop.counts();
  const SequenceRequest other = greedy(2, text(20, 2), 25);
  loop.add(other, into(answer)).value();
  run(loop);
  EXPECT_EQ(answer, alone(other));
  EXPECT_EQ(loop.counts().drafted - before.drafted, 21) << "three steps of eight tokens";
  EXPECT_EQ(loop.counts().accepted - before.accepted, 21);
}

// Sequences go on with some of their drafts and another token, or others come into their slots, or they do not decode.
TEST_F(ModelDraftsTest, are_those_of_a_model_that_begins_anew_each_time) {
  const auto own = target(3), twin = sharp_engine(*model_, *device_, {});
  ModelDrafts drafts = drafts_for(*own, 3);
  std::uint64_t drawn = 0;
  const auto draw = [&](std::uint64_t below) { return philox(5, philox_counter(drawn++, 0))[0] % below; };
  std::vector<Tokens> all(3), last(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<DraftedSequence> sequences;
    for (std::size_t slot = 0; slot < 3; ++slot) {
      Tokens& tokens = all[slot];
      if (tokens.empty() || tokens.size() > 60 || draw(6) == 0) {
        const auto length = static_cast<std::int64_t>(1 + draw(20));
        tokens = text(length, 100 + drawn);
      } else {
        const auto right = static_cast<std::ptrdiff_t>(draw(last[slot].size() + 1));
        tokens.insert(tokens.end(), last[slot].begin(), last[slot].begin() + right);
        tokens.push_back(static_cast<std::int32_t>(draw(13)));
      }
      last[slot].clear();
      if (draw(4) > 0) sequences.push_back({static_cast<std::int64_t>(slot), tokens, 100});
    }
    drafts.draft(sequences, 6).value();
    for (const DraftedSequence& sequence : sequences) {
      const auto slot = static_cast<std::size_t>(sequence.slot);
      EXPECT_EQ(sequence.drafts, likeliest_after(*twin, all[slot], 6 / sequences.size())) << round << " " << slot;
      last[slot] = sequence.drafts;
    }
  }
}

TEST_F(ModelDraftsTest, begin_once_the_prompt_is_computed_in_pieces) {
  const auto twin = sharp_engine(*model_, *device_, {});
  ModelDrafts drafts(sharp_engine(*model_, *device_, {.buckets = {4}, .drafts = 1}), 13);
  const Tokens tokens = text(10, 1);
  EXPECT_EQ(drafted(drafts, tokens, 3), Tokens{}) << "four tokens";
  EXPECT_EQ(drafted(drafts, tokens, 3), Tokens{}) << "four more";
  EXPECT_EQ(drafted(drafts, tokens, 3), likeliest_after(*twin, tokens, 3));
}

TEST_F(ModelDraftsTest, are_as_many_as_cache_and_vocabulary_allow) {
  ModelDrafts shorter(sharp_engine(*model_, *device_, {.cache = 12, .drafts = 1}), 13);
  EXPECT_EQ(drafted(shorter, text(10, 1), 7).size(), 3U);
  EXPECT_EQ(drafted(shorter, text(12, 1), 7).size(), 1U);
  EXPECT_EQ(drafted(shorter, text(13, 1), 7).size(), 0U);

  ModelDrafts few(sharp_engine(*model_, *device_, {.drafts = 1}), 5);
  for (std::uint64_t stream = 0; stream < 5; ++stream) {
    for (const std::int32_t token : drafted(few, text(8, stream), 7)) EXPECT_LT(token, 5);
  }

  const auto small = make_decoder(tiny_decoder(10, 80));
  ModelDrafts other(sharp_engine(*small, *device_, {.drafts = 1}), 13);
  EXPECT_EQ(drafted(other, {4, 9}, 7).size(), 7U);
  EXPECT_EQ(drafted(other, {4, 12, 9}, 7).size(), 0U) << "12 is no token of it";
}

TEST_F(ModelDraftsTest, of_damaged_weights_end_the_serving) {
  const auto own = target(1);
  std::unique_ptr<Engine> engine = sharp_engine(*model_, *device_, draft_engine_options(*own));
  spoil_weights(*model_, *engine);
  ModelDrafts drafts(std::move(engine), 13);
  ServingLoop loop(*own, {.drafts = &drafts});
  Answer answer;
  loop.add(greedy(1, {4, 9}, 20), into(answer)).value();
  EXPECT_TRUE(loop.step().value()) << "the prompt is computed without drafts";
  const Result<bool> failed = loop.step();
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("of the model that drafts"), std::string::npos) << failed.error().message;
}

}  // namespace
}  // namespace systole

// ServingThread::reload: each answer is that of one checkpoint alone, and none is lost. A checkpoint is a seed of the
// tiny model's weights.

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "execute/serve/serving_thread.h"
#include "execute/serve/testing/tiny_engine.h"

namespace systole {
namespace {

using Tokens = std::vector<std::int32_t>;
using Vectors = TextsRequest::Vectors;

constexpr std::int64_t kOld = 3, kNew = 5;  // steps, and seeds of their weights

struct Reply {
  Tokens tokens;
  std::optional<SequenceEnd> end;
  std::optional<Error> refusal;
};

// A prompt of more than two pages, so that its beginning is kept.
Tokens prompt_of(std::int32_t first) {
  Tokens tokens;
  for (std::int32_t i = 0; i < 36; ++i) tokens.push_back((first + i * i) % 13);
  return tokens;
}

class ServingReload : public testing::Test {
 protected:
  std::unique_ptr<ServingThread> serve(const EngineOptions& options) {
    return std::make_unique<ServingThread>(sharp_engine(*model_, *device_, options, kOld), 10, kOld);
  }
  struct Asked {
    std::uint64_t id;
    std::future<Reply> reply;
  };
  static Asked ask(
      ServingThread& serving, Tokens prompt, std::int64_t tokens = 8, std::function<void()> at_token = [] {}) {
    const auto reply = std::make_shared<Reply>();
    const auto promise = std::make_shared<std::promise<Reply>>();
    Asked asked{0, promise->get_future()};
    asked.id = serving.submit({.prompt = std::move(prompt), .sampling = {.temperature = 0}, .max_tokens = tokens},
                              {[reply, at_token](std::int32_t token) {
                                 reply->tokens.push_back(token);
                                 at_token();
                                 return true;
                               },
                               [reply, promise](SequenceEnd end) {
                                 reply->end = end;
                                 promise->set_value(*reply);
                               },
                               [reply, promise](const Error& error) {
                                 reply->refusal = error;
                                 promise->set_value(*reply);
                               }});
    return asked;
  }
  // The engine's thread stands at the first token of a sequence until `go`.
  struct Standing {
    std::promise<void> began, may_go;
    std::shared_future<void> going = may_go.get_future().share();
    bool told = false;
    void at_token() {
      if (std::exchange(told, true)) return;
      began.set_value();
      going.wait();
    }
    void go() { may_go.set_value(); }
  };
  static Asked ask_and_stand(ServingThread& serving, Tokens prompt, Standing& standing, std::int64_t tokens = 8) {
    Asked asked = ask(serving, std::move(prompt), tokens, [&standing] { standing.at_token(); });
    standing.began.get_future().wait();
    return asked;
  }
  static std::future<Result<Vectors>> embed(ServingThread& serving, Tokens text) {
    const auto promise = std::make_shared<std::promise<Result<Vectors>>>();
    serving.embed({.texts = {std::move(text)},
                   .done = [promise](Result<Vectors> vectors) { promise->set_value(std::move(vectors)); }});
    return promise->get_future();
  }
  WeightsReload loading(std::int64_t step) {
    return {step, [this, step](Engine& engine, std::int64_t) -> Result<std::int64_t> {
              write_weights(*model_, engine, static_cast<std::uint64_t>(step));
              return step;
            }};
  }
  // What a server of these weights alone answers.
  Tokens alone(std::int64_t seed, Tokens prompt, std::int64_t tokens = 8) {
    const std::unique_ptr<Device> device = make_reference_device();
    ServingThread serving(sharp_engine(*model_, *device, {.slots = 1}, static_cast<std::uint64_t>(seed)), 10, seed);
    return ask(serving, std::move(prompt), tokens).reply.get().tokens;
  }
  Vectors vectors_alone(std::int64_t seed, Tokens text) {
    const std::unique_ptr<Device> device = make_reference_device();
    ServingThread serving(sharp_engine(*model_, *device, {.hidden = true}, static_cast<std::uint64_t>(seed)), 10, seed);
    return embed(serving, std::move(text)).get().value();
  }

  std::unique_ptr<const Model> model_ = make_decoder(tiny_decoder(13, 80));
  std::unique_ptr<Device> device_ = make_reference_device();
};

TEST_F(ServingReload, what_has_begun_ends_with_the_old_and_what_waits_gets_the_new) {
  const Tokens old_a = alone(kOld, prompt_of(1)), new_b = alone(kNew, prompt_of(2)), new_a = alone(kNew, prompt_of(1));
  ASSERT_NE(old_a, new_a);
  ASSERT_NE(alone(kOld, prompt_of(2)), new_b);
  const auto serving = serve({.slots = 1});
  Standing standing;
  Asked a = ask_and_stand(*serving, prompt_of(1), standing);
  Asked waiting = ask(*serving, prompt_of(2));
  serving->reload(loading(kNew));
  Asked meanwhile = ask(*serving, prompt_of(2));
  EXPECT_EQ(serving->counts().step, kOld);
  standing.go();
  EXPECT_EQ(a.reply.get().tokens, old_a);
  EXPECT_EQ(waiting.reply.get().tokens, new_b);
  EXPECT_EQ(meanwhile.reply.get().tokens, new_b);
  EXPECT_EQ(ask(*serving, prompt_of(1)).reply.get().tokens, new_a);
  const ServingCounts counts = serving->counts();
  EXPECT_EQ(counts.step, kNew);
  EXPECT_EQ(counts.reloads, 1);
  EXPECT_EQ(counts.failed_reloads, 0);
  EXPECT_EQ(counts.ended, 4);
  EXPECT_EQ(counts.refused + counts.cancelled, 0);
}

// With a slot free the others could begin at once; they may not while an old one runs.
TEST_F(ServingReload, a_free_slot_is_given_to_nobody_before_the_new_weights) {
  const Tokens old_a = alone(kOld, prompt_of(1), 20), new_b = alone(kNew, prompt_of(2));
  const auto serving = serve({.slots = 3});
  Standing standing;
  Asked a = ask_and_stand(*serving, prompt_of(1), standing, 20);
  serving->reload(loading(kNew));
  Asked b = ask(*serving, prompt_of(2)), c = ask(*serving, prompt_of(2));
  standing.go();
  EXPECT_EQ(b.reply.get().tokens, new_b);
  EXPECT_EQ(c.reply.get().tokens, new_b);
  ASSERT_EQ(a.reply.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "it was to end before";
  EXPECT_EQ(a.reply.get().tokens, old_a);
}

TEST_F(ServingReload, keys_and_values_of_the_old_are_not_found_by_a_prompt) {
  const auto serving = serve({.slots = 1});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(*serving, prompt_of(1)).reply.get().tokens, alone(kOld, prompt_of(1)));
  serving->reload(loading(kNew));
  const Tokens expected = alone(kNew, prompt_of(1));
  EXPECT_EQ(ask(*serving, prompt_of(1)).reply.get().tokens, expected);
  EXPECT_EQ(ask(*serving, prompt_of(1)).reply.get().tokens, expected);
  EXPECT_EQ(ask(*serving, {1}).reply.get().tokens, alone(kNew, {1})) << "and the counts are of all before";
  EXPECT_EQ(serving->counts().cached_tokens, 2 * 32) << "once of the old and once of the new";
}

// Pages for one long sequence: the second gives way with tokens of the old, and waits in the queue with those that have
// none.
TEST_F(ServingReload, a_preempted_sequence_ends_with_the_old) {
  const Tokens old_a = alone(kOld, prompt_of(1), 40), old_b = alone(kOld, prompt_of(2), 40);
  const Tokens new_c = alone(kNew, prompt_of(3));
  const auto serving = serve({.slots = 2, .pages = 6});
  Standing first, second;
  Asked a = ask_and_stand(*serving, prompt_of(1), first, 40);
  Asked b = ask(*serving, prompt_of(2), 40, [&] { second.at_token(); });
  first.go();
  second.began.get_future().wait();
  serving->reload(loading(kNew));
  Asked c = ask(*serving, prompt_of(3));
  second.go();
  EXPECT_EQ(a.reply.get().tokens, old_a);
  EXPECT_EQ(b.reply.get().tokens, old_b);
  EXPECT_EQ(c.reply.get().tokens, new_c);
  EXPECT_EQ(ask(*serving, {1}).reply.get().end, SequenceEnd::max_tokens);
  EXPECT_GE(serving->counts().preemptions, 1);
}

TEST_F(ServingReload, does_not_wait_for_a_client_that_has_left) {
  const auto serving = serve({.slots = 1});
  Standing standing;
  const Asked a = ask_and_stand(*serving, prompt_of(1), standing, 40);
  serving->reload(loading(kNew));
  serving->cancel(a.id);
  standing.go();
  EXPECT_EQ(ask(*serving, prompt_of(2)).reply.get().tokens, alone(kNew, prompt_of(2)));
}

TEST_F(ServingReload, vectors_are_of_the_weights_that_there_were_when_they_came) {
  const Tokens text{4, 5, 6};
  const auto serving = serve({.hidden = true});
  Standing standing;
  Asked a = ask_and_stand(*serving, prompt_of(1), standing);
  auto before = embed(*serving, text);
  serving->reload(loading(kNew));
  auto after = embed(*serving, text);
  standing.go();
  EXPECT_EQ(before.get().value(), vectors_alone(kOld, text));
  EXPECT_EQ(after.get().value(), vectors_alone(kNew, text));
  EXPECT_NE(vectors_alone(kOld, text), vectors_alone(kNew, text));
  EXPECT_EQ(a.reply.get().tokens, alone(kOld, prompt_of(1)));
}

TEST_F(ServingReload, the_latest_of_two_that_wait_is_taken) {
  const auto serving = serve({.slots = 1});
  Standing standing;
  Asked a = ask_and_stand(*serving, prompt_of(1), standing);
  serving->reload({kOld + 1, [](Engine&, std::int64_t) -> Result<std::int64_t> {
                     ADD_FAILURE() << "a newer one came before it was its turn";
                     return kOld;
                   }});
  serving->reload(loading(kNew));
  standing.go();
  EXPECT_EQ(a.reply.get().tokens, alone(kOld, prompt_of(1)));
  EXPECT_EQ(ask(*serving, prompt_of(1)).reply.get().tokens, alone(kNew, prompt_of(1)));
}

TEST_F(ServingReload, one_that_gives_the_old_back_has_failed_and_the_old_goes_on) {
  const auto serving = serve({.slots = 1});
  std::int64_t told = 0;
  serving->reload({kNew, [&](Engine&, std::int64_t served) -> Result<std::int64_t> { return told = served; }});
  EXPECT_EQ(ask(*serving, prompt_of(1)).reply.get().tokens, alone(kOld, prompt_of(1)));
  EXPECT_EQ(told, kOld);
  serving->note_failed_reload();
  EXPECT_EQ(serving->counts().step, kOld);
  EXPECT_EQ(serving->counts().reloads, 0);
  EXPECT_EQ(serving->counts().failed_reloads, 2);
}

TEST_F(ServingReload, without_whole_weights_serving_fails_and_everybody_is_told) {
  const auto serving = serve({.hidden = true});
  Standing standing;
  Asked a = ask_and_stand(*serving, prompt_of(1), standing);
  serving->reload({kNew, [](Engine&, std::int64_t) -> Result<std::int64_t> {
                     return error(ErrorKind::corrupt, "neither can be read");
                   }});
  Asked b = ask(*serving, prompt_of(2));
  auto vectors = embed(*serving, {1, 2});
  standing.go();
  EXPECT_EQ(a.reply.get().tokens, alone(kOld, prompt_of(1)));
  const Reply refused = b.reply.get();
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->kind, ErrorKind::internal);
  EXPECT_EQ(vectors.get().error().kind, ErrorKind::internal);
  EXPECT_EQ(serving->failure()->kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace systole

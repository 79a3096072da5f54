#include "execute/serve/serving_thread.h"

#include <gtest/gtest.h>

#include <future>

#include "execute/serve/testing/tiny_engine.h"

namespace systole {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Reply {
  Tokens tokens;
  std::optional<SequenceEnd> end;
  std::optional<Error> refusal;
};

class ServingThreadTest : public testing::Test {
 protected:
  std::unique_ptr<ServingThread> serve(std::int64_t slots, std::int64_t waiting) {
    return std::make_unique<ServingThread>(sharp_engine(*model_, *device_, {.slots = slots}), waiting);
  }
  struct Asked {
    std::uint64_t id;
    std::future<Reply> reply;
  };
  static Asked ask(
      ServingThread& serving, Tokens prompt, std::int64_t tokens = 4,
      std::function<bool()> goes_on = [] { return true; }) {
    const auto reply = std::make_shared<Reply>();
    const auto promise = std::make_shared<std::promise<Reply>>();
    Asked asked{0, promise->get_future()};
    asked.id = serving.submit({.prompt = std::move(prompt), .sampling = {.temperature = 0}, .max_tokens = tokens},
                              {[reply, goes_on](std::int32_t token) {
                                 reply->tokens.push_back(token);
                                 return goes_on();
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
  // A step that gives a request its one token, and does not end before go().
  class HeldStep {
   public:
    explicit HeldStep(ServingThread& serving)
        : asked_(ask(serving, {1}, 1, [this] {
            began_.set_value();
            going_.wait();
            return true;
          })) {
      began_.get_future().wait();
    }
    Reply go() {
      may_go_.set_value();
      return asked_.reply.get();
    }

   private:
    std::promise<void> began_, may_go_;
    std::future<void> going_ = may_go_.get_future();
    Asked asked_;
  };
  std::unique_ptr<const Model> model_ = make_decoder(tiny_decoder());
  std::unique_ptr<Device> device_ = make_reference_device();
};

TEST_F(ServingThreadTest, threads_ask_at_once_and_each_gets_its_answer) {
  const auto serving = serve(3, 1000);
  std::vector<Tokens> expected;
  for (std::int32_t first = 0; first < 13; ++first) expected.push_back(ask(*serving, {first, 5}).reply.get().tokens);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::int32_t first = 0; first < 13; ++first) {
        const Reply reply = ask(*serving, {first, 5}).reply.get();
        right += reply.tokens == expected[static_cast<std::size_t>(first)] && reply.end == SequenceEnd::max_tokens;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4 * 13);
  const ServingCounts counts = serving->counts();
  EXPECT_EQ(counts.ended, 5 * 13);
  EXPECT_EQ(counts.prompt_tokens, 5 * 13 * 2);
  EXPECT_EQ(counts.answer_tokens, 5 * 13 * 4);
  EXPECT_EQ(counts.refused + counts.cancelled, 0);
}

TEST_F(ServingThreadTest, a_full_queue_a_wrong_prompt_and_a_drain_are_refused_with_reasons) {
  const auto serving = serve(1, 0);
  std::promise<void> may_go;
  const std::shared_future<void> going = may_go.get_future();
  Asked first = ask(*serving, {1}, 2, [going] {
    going.wait();
    return true;
  });
  Asked second = ask(*serving, {2});
  Asked wrong = ask(*serving, {99});
  may_go.set_value();
  EXPECT_EQ(first.reply.get().end, SequenceEnd::max_tokens);
  EXPECT_EQ(wrong.reply.get().refusal->kind, ErrorKind::invalid);
  const Reply reply = second.reply.get();
  ASSERT_TRUE(reply.refusal) << "the slot was taken";
  EXPECT_EQ(reply.refusal->kind, ErrorKind::busy);
  serving->drain();
  EXPECT_EQ(ask(*serving, {1}).reply.get().refusal->kind, ErrorKind::interrupted);
  EXPECT_TRUE(serving->counts().draining);
  EXPECT_GE(serving->counts().refused, 2);
}

TEST_F(ServingThreadTest, what_came_before_a_drain_is_answered) {
  const auto serving = serve(1, 1);
  HeldStep first(*serving);
  Asked second = ask(*serving, {2});  // not taken: a step runs
  serving->drain();
  Asked third = ask(*serving, {3});
  EXPECT_EQ(first.go().end, SequenceEnd::max_tokens);
  EXPECT_EQ(second.reply.get().end, SequenceEnd::max_tokens);
  EXPECT_EQ(third.reply.get().refusal->kind, ErrorKind::interrupted);
}

TEST_F(ServingThreadTest, what_comes_during_a_step_is_kept_up_to_a_limit) {
  const auto serving = serve(1, 0);
  HeldStep first(*serving);
  std::vector<Asked> wrong;
  for (int i = 0; i < 1 + 1024 + 1; ++i) wrong.push_back(ask(*serving, {99}));
  EXPECT_EQ(first.go().end, SequenceEnd::max_tokens);
  for (std::size_t i = 0; i < wrong.size(); ++i)
    EXPECT_EQ(wrong[i].reply.get().refusal->kind, i < 1 + 1024 ? ErrorKind::invalid : ErrorKind::busy) << i;
  EXPECT_EQ(ask(*serving, {1}).reply.get().end, SequenceEnd::max_tokens);
}

TEST_F(ServingThreadTest, cancelled_requests_free_their_slot) {
  const auto serving = serve(1, 10);
  std::promise<void> began;
  const auto running = ask(*serving, {1}, 8, [&, told = false]() mutable {
    if (!std::exchange(told, true)) began.set_value();
    return true;
  });
  began.get_future().wait();
  serving->cancel(running.id);
  serving->cancel(12345);  // nobody
  EXPECT_EQ(ask(*serving, {2}).reply.get().end, SequenceEnd::max_tokens);
}

TEST_F(ServingThreadTest, weights_that_are_not_finite_are_not_the_fault_of_a_request) {
  std::unique_ptr<Engine> engine = sharp_engine(*model_, *device_, {.slots = 1});
  spoil_weights(*model_, *engine);
  ServingThread serving(std::move(engine), 10);
  for (int i = 0; i < 3; ++i) {
    const Reply reply = ask(serving, {1}).reply.get();
    ASSERT_TRUE(reply.refusal);
    EXPECT_EQ(reply.refusal->kind, ErrorKind::internal);
    EXPECT_NE(reply.refusal->message.find("nan"), std::string::npos) << reply.refusal->message;
  }
  EXPECT_EQ(serving.failure()->kind, ErrorKind::invalid) << "the weights are, for whoever serves them";
  EXPECT_TRUE(serving.counts().failed);
  EXPECT_EQ(serving.counts().refused, 3);
}

TEST_F(ServingThreadTest, it_ends_with_requests_under_way) {
  auto serving = serve(1, 10);
  const auto a = ask(*serving, {1}, 8), b = ask(*serving, {1}, 8);
  serving.reset();
}

}  // namespace
}  // namespace systole

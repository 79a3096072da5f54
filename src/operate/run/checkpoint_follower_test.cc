#include "operate/run/checkpoint_follower.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "execute/checkpoint/retention.h"
#include "execute/checkpoint/save.h"
#include "execute/data/testing/made_up_text.h"
#include "execute/serve/testing/tiny_engine.h"
#include "execute/train/state.h"
#include "execute/train/training_job.h"
#include "ground/base/testing/files.h"

namespace systole {
namespace {

using Tokens = std::vector<std::int32_t>;

const Tokenizer& tokenizer() {
  static const Tokenizer made = Tokenizer::train({.vocabulary = 400}, made_up_documents(500)).value();
  return made;
}

// Checkpoint N has the tiny model's weights of seed N; number 3 is served.
class CheckpointFollowerTest : public testing::Test {
 protected:
  CheckpointFollowerTest() {
    place_ = std::make_shared<CheckpointPlace>(
        CheckpointPlace{home_at(read_store_uri("file://" + folder_.path()).value()).value(), std::nullopt});
    save(3);
    served_.checkpoints = place_;
  }
  void save(std::int64_t step) {
    const auto engine = sharp_engine(*served_.model, *device_, {}, static_cast<std::uint64_t>(step));
    checkpoint::SaveRequest request;
    request.step = step;
    request.date = "2026-01-31T12:00:00Z";
    request.identity = {"gpt", parameters_hash(*served_.model), "0"};
    request.tensors = state_to_save(engine->executor());
    checkpoint::SaveOptions options;
    options.retention.last = 0;
    checkpoint::save(place_->folder, request, options).value();
  }
  // Changes a byte in each of its chunks; called twice, it is whole again.
  void flip(std::int64_t step) {
    const checkpoint::Manifest manifest = checkpoint::load_manifest(place_->folder, step).value();
    for (const checkpoint::ChunkFile& chunk : manifest.chunks) {
      const std::string path = folder_.path() + "/" + place_->folder.chunk(chunk.hash);
      std::filesystem::permissions(path, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
      std::string bytes = text_of(path);
      bytes.at(bytes.size() / 2) ^= 1;
      std::ofstream(path, std::ios::binary) << bytes;
    }
  }
  void remove(std::int64_t step) { std::filesystem::remove(folder_.path() + "/" + place_->folder.manifest(step)); }

  std::unique_ptr<ServingThread> serve() {
    return std::make_unique<ServingThread>(sharp_engine(*served_.model, *device_, {}, 3), 10, 3);
  }
  CheckpointFollower follower(ServingThread& serving, Followed which = Followed::latest) {
    return CheckpointFollower(served_, serving,
                              {which, [this](const Error& error) { warnings_.push_back(to_string(error)); },
                               [this](std::int64_t step) { steps_.push_back(step); }});
  }
  static std::future<Tokens> ask(
      ServingThread& serving, std::function<void()> at_token = [] {}) {
    const auto tokens = std::make_shared<Tokens>();
    const auto promise = std::make_shared<std::promise<Tokens>>();
    std::future<Tokens> answer = promise->get_future();
    serving.submit({.prompt = {1, 5}, .sampling = {.temperature = 0}, .max_tokens = 8},
                   {[tokens, at_token](std::int32_t token) {
                      tokens->push_back(token);
                      at_token();
                      return true;
                    },
                    [tokens, promise](SequenceEnd) { promise->set_value(*tokens); },
                    [promise](const Error&) { promise->set_value({}); }});
    return answer;
  }
  Tokens alone(std::int64_t step) {
    const std::unique_ptr<Device> device = make_reference_device();
    ServingThread serving(sharp_engine(*served_.model, *device, {}, static_cast<std::uint64_t>(step)), 10);
    return ask(serving).get();
  }
  // The follower looks while a sequence stands, and `then` happens before what it found is loaded.
  Tokens look_and_before_loading(ServingThread& serving, const std::function<void()>& then) {
    std::promise<void> began, may_go;
    const std::shared_future<void> going = may_go.get_future().share();
    std::future<Tokens> standing = ask(serving, [&, told = false]() mutable {
      if (!std::exchange(told, true)) began.set_value();
      going.wait();
    });
    began.get_future().wait();
    auto looks = follower(serving);
    looks.look();
    then();
    may_go.set_value();
    EXPECT_EQ(standing.get(), alone(3));
    return ask(serving).get();
  }

  TemporaryFolder folder_;
  std::shared_ptr<CheckpointPlace> place_;
  std::unique_ptr<Device> device_ = make_reference_device();
  ServedModel served_{make_decoder(tiny_decoder(13, 32)), {}, {}, DType::f32, tokenizer(), {}, 3, "mine", {}};
  std::vector<std::string> warnings_;  // of the thread that looks, and of the engine's, one after the other
  std::vector<std::int64_t> steps_;
};

TEST_F(CheckpointFollowerTest, serves_the_newest) {
  const auto serving = serve();
  auto follows = follower(*serving);
  follows.look();
  EXPECT_EQ(ask(*serving).get(), alone(3)) << "there is no newer one";
  for (const std::int64_t step : {2, 4, 5}) save(step);
  ASSERT_NE(alone(3), alone(5));
  for (int i = 0; i < 3; ++i) {
    follows.look();
    EXPECT_EQ(ask(*serving).get(), alone(5));
  }
  EXPECT_EQ(serving->counts().step, 5);
  EXPECT_EQ(serving->counts().reloads, 1);
  EXPECT_EQ(steps_, std::vector<std::int64_t>{5});
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

TEST_F(CheckpointFollowerTest, a_damaged_one_is_told_once_and_the_newest_whole_one_is_served) {
  const auto serving = serve();
  auto follows = follower(*serving);
  save(5);
  flip(5);
  for (int i = 0; i < 3; ++i) {
    follows.look();
    EXPECT_EQ(ask(*serving).get(), alone(3)) << "the old one goes on";
  }
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("the checkpoint of step 5 was passed over"), std::string::npos) << warnings_[0];
  EXPECT_NE(warnings_[0].find("systole ckpt verify mine"), std::string::npos) << warnings_[0];
  EXPECT_EQ(serving->counts().failed_reloads, 1);
  EXPECT_EQ(serving->counts().reloads, 0);
  save(4);
  follows.look();
  EXPECT_EQ(ask(*serving).get(), alone(4));
  flip(5);
  follows.look();
  EXPECT_EQ(ask(*serving).get(), alone(4)) << "it is not read again and again";
  follows.look(true);
  EXPECT_EQ(ask(*serving).get(), alone(5));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(CheckpointFollowerTest, serves_blessed_ones_alone) {
  const auto serving = serve();
  auto follows = follower(*serving, Followed::blessed);
  for (const std::int64_t step : {4, 5}) save(step);
  follows.look();
  EXPECT_EQ(ask(*serving).get(), alone(3));
  checkpoint::bless(place_->folder, 4).value();
  follows.look();
  EXPECT_EQ(ask(*serving).get(), alone(4));
  checkpoint::bless(place_->folder, 3).value();
  follows.look();
  EXPECT_EQ(ask(*serving).get(), alone(4)) << "it is older";
}

TEST_F(CheckpointFollowerTest, one_of_another_model_is_refused) {
  const auto serving = serve();
  auto follows = follower(*serving);
  DecoderSpec wider = tiny_decoder(13, 32);
  wider.mlp = 16;
  std::unique_ptr<const Model> own = std::exchange(served_.model, make_decoder(wider));
  save(4);
  served_.model = std::move(own);
  follows.look();
  EXPECT_EQ(ask(*serving).get(), alone(3));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("of another model"), std::string::npos) << warnings_[0];
}

TEST_F(CheckpointFollowerTest, one_that_is_removed_before_it_is_loaded_changes_nothing) {
  const auto serving = serve();
  save(4);
  EXPECT_EQ(look_and_before_loading(*serving, [&] { remove(4); }), alone(3));
  EXPECT_EQ(serving->counts().step, 3);
  EXPECT_EQ(serving->counts().failed_reloads, 1);
  EXPECT_TRUE(steps_.empty());
}

TEST_F(CheckpointFollowerTest, what_fails_in_the_middle_brings_the_old_back) {
  const auto serving = serve();
  save(4);
  save(5);
  EXPECT_EQ(look_and_before_loading(*serving, [&] { flip(5); }), alone(3));
  EXPECT_EQ(serving->counts().step, 3);
  EXPECT_EQ(serving->counts().failed_reloads, 1);
  EXPECT_EQ(serving->counts().reloads, 0);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(CheckpointFollowerTest, without_the_old_the_newest_whole_one_is_served) {
  const auto serving = serve();
  for (const std::int64_t step : {4, 5, 6}) save(step);
  EXPECT_EQ(look_and_before_loading(*serving,
                                    [&] {
                                      flip(6);
                                      flip(5);
                                      remove(3);
                                    }),
            alone(4));
  EXPECT_EQ(serving->counts().step, 4);
  EXPECT_EQ(serving->counts().failed_reloads, 1);
  EXPECT_EQ(steps_, std::vector<std::int64_t>{4});
}

TEST_F(CheckpointFollowerTest, without_any_serving_fails) {
  const auto serving = serve();
  save(4);
  const Tokens none = look_and_before_loading(*serving, [&] {
    flip(4);
    flip(3);
  });
  EXPECT_EQ(none, Tokens{});
  ASSERT_TRUE(serving->failure());
  EXPECT_EQ(serving->failure()->kind, ErrorKind::corrupt);
}

TEST_F(CheckpointFollowerTest, weights_in_int8_are_made_of_the_new) {
  const auto engine_of = [&](Device& device, std::int64_t step) {
    auto engine = std::move(Engine::create(*served_.model, device, {.parameter = DType::i8})).value();
    const auto from = checkpoint::open_step(place_->folder, step).value();
    load_engine(*engine, served_, [&](Executor& executor) { return load_parameters(executor, from); }).value();
    return engine;
  };
  save(4);
  const std::unique_ptr<Device> own = make_reference_device();
  ServingThread other(engine_of(*own, 4), 10);
  ServingThread serving(engine_of(*device_, 3), 10, 3);
  const Tokens old = ask(serving).get(), expected = ask(other).get();
  ASSERT_NE(old, expected);
  auto follows = follower(serving);
  follows.look();
  EXPECT_EQ(ask(serving).get(), expected);
}

}  // namespace
}  // namespace systole

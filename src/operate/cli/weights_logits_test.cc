// Logits and greedy tokens of tiny random models against those of `transformers` (tools/oracles/make_models.py): 1e-4
// in f32, on every backend. With SYSTOLE_TEST_LONG the models are made anew by the pinned transformers, which
// tools/oracles/install puts into the build folder.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "describe/models/list.h"
#include "execute/serve/engine.h"
#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/base/testing/places.h"
#include "ground/process/capture.h"
#include "operate/cli/hf_folder.h"
#include "operate/cli/session.h"

namespace systole::cli {
namespace {

constexpr double kTolerance = 1e-4;

// Where the models made anew lie.
std::string made_anew() {
  const std::string tools = SYSTOLE_SOURCE_DIR "/tools/oracles", folder = SYSTOLE_BINARY_DIR "/oracles";
  const auto run = [&](std::vector<std::string> words) {
    Command command;
    command.argv = std::move(words);
    command.env = {{"PYTHONPATH", folder + "/large"}};
    const Captured said = run_captured(std::move(command), {.timeout = Seconds(3600.0)}).value();
    EXPECT_TRUE(said.exit.ok()) << said.out << said.err;
  };
  run({tools + "/install", "large", folder + "/large"});
  if (!testing::Test::HasFailure()) run({"python3", tools + "/make_models.py", folder + "/models"});
  return folder + "/models";
}

std::string folder_of(const std::string& name) {
  static const std::string folder =
      std::getenv("SYSTOLE_TEST_LONG") != nullptr ? made_anew() : SYSTOLE_SOURCE_DIR "/src/execute/weights/golden";
  return folder + "/" + name;
}

std::vector<std::int32_t> tokens_at(const Node& told, const char* key) {
  std::vector<std::int32_t> tokens;
  for (const Node& token : told.find(key)->items()) tokens.push_back(static_cast<std::int32_t>(token.as_int().value()));
  return tokens;
}

void expect_logits(const Node& row, std::span<const float> logits) {
  ASSERT_EQ(row.items().size(), logits.size());
  double worst = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(logits[i]) - row.items()[i].as_double().value()));
  EXPECT_LE(worst, kTolerance);
}

// A model in an engine, and what transformers said of it: parameters are the model's name and the backend.
class GoldenModel : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [name, backend] = GetParam();
    const std::string path = folder_of(name);
    told_ = parse_json(read_text(*open_posix_store(path).value(), "expected.json").value(), "expected.json").value();
    const Workload workload = workload_around(path).value();
    const HfFolder folder = open_hf_folder(path, workload.model).value();
    tokenizer_ = tokenizer_of(folder, workload.model).value();
    FakeClock clock;
    machine_ = open_machine(backend, workload.resources, clock).value();
    model_ = make_model(workload.model);
    engine_ = Engine::create(*model_, *machine_->device, {.cache = 64}).value();
    ASSERT_TRUE(load_weights(engine_->executor(), folder).ok());
    prompt_ = tokens_at(told_, "prompt");
    greedy_ = tokens_at(told_, "greedy");
  }

  std::vector<std::int32_t> encoded_text() const {
    std::vector<std::int32_t> tokens;
    Encoder(*tokenizer_).encode(told_.find("text")->text(), tokens);
    return tokens;
  }
  std::span<const Node> rows() const { return told_.find("logits")->items(); }

  // The likeliest token from `first` on, which is then decoded. Beyond the tokenizer: padding.
  std::int32_t draw(int first) {
    const auto logits = engine_->logits(0).first(static_cast<std::size_t>(tokenizer_->vocabulary()));
    const auto token =
        static_cast<std::int32_t>(std::max_element(logits.begin() + first, logits.end()) - logits.begin());
    const Engine::Next next[] = {{0, token}};
    EXPECT_TRUE(engine_->decode(next).ok());
    return token;
  }

  Node told_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<Machine> machine_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::int32_t> prompt_, greedy_;
};

class WeightsLogits : public GoldenModel {};

TEST_P(WeightsLogits, AreThoseOfTransformers) {
  ASSERT_EQ(greedy_.size(), 30u);
  std::vector<std::int32_t> encoded = encoded_text();
  if (std::get<0>(GetParam()) != "gpt2") encoded.insert(encoded.begin(), tokenizer_->bos());
  EXPECT_EQ(encoded, prompt_);
  for (std::size_t i = 0; i < rows().size(); ++i) {
    const std::size_t length = prompt_.size() - rows().size() + 1 + i;
    ASSERT_TRUE(engine_->prefill(0, std::span(prompt_).first(length)).ok());
    expect_logits(rows()[i], engine_->logits(0));
  }
  std::vector<std::int32_t> drawn;
  while (drawn.size() < greedy_.size()) drawn.push_back(draw(2));
  EXPECT_EQ(drawn, greedy_);
}

// A t5 reads the prompt in its encoder; its answer begins with token 0. Logits of the answer's first, second and last
// position, the answer being transformers' own.
class WeightsLogitsOfT5 : public GoldenModel {};

TEST_P(WeightsLogitsOfT5, AreThoseOfTransformers) {
  ASSERT_EQ(greedy_.size(), 20u);
  ASSERT_EQ(rows().size(), 3u);
  std::vector<std::int32_t> encoded = encoded_text();
  encoded.push_back(tokenizer_->eos());
  EXPECT_EQ(encoded, prompt_);
  ASSERT_TRUE(engine_->prefill(0, prompt_).ok());
  std::vector<std::int32_t> drawn;
  while (drawn.size() < greedy_.size()) {
    if (drawn.size() < 2) expect_logits(rows()[drawn.size()], engine_->logits(0));
    drawn.push_back(draw(3));  // after pad, eos and unk
  }
  expect_logits(rows()[2], engine_->logits(0));
  EXPECT_EQ(drawn, greedy_);
}

#ifdef SYSTOLE_HAS_CPU
const auto kBackends = testing::Values("reference", "cpu");
#else
const auto kBackends = testing::Values("reference");
#endif
INSTANTIATE_TEST_SUITE_P(All, WeightsLogits,
                         testing::Combine(testing::Values("gpt2", "llama", "llama_bf16"), kBackends),
                         [](const auto& at) { return std::get<0>(at.param) + "_" + std::get<1>(at.param); });
INSTANTIATE_TEST_SUITE_P(All, WeightsLogitsOfT5, testing::Combine(testing::Values("t5", "t5_gated"), kBackends),
                         [](const auto& at) { return std::get<0>(at.param) + "_" + std::get<1>(at.param); });

}  // namespace
}  // namespace systole::cli

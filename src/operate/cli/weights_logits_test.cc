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

class WeightsLogits : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(WeightsLogits, AreThoseOfTransformers) {
  const auto& [name, backend] = GetParam();
  const std::string path = folder_of(name);
  const auto store = open_posix_store(path).value();
  const Node told = parse_json(read_text(*store, "expected.json").value(), "expected.json").value();
  const Workload workload = workload_around(path).value();
  const HfFolder folder = open_hf_folder(path, workload.model).value();
  FakeClock clock;
  const Machine machine = open_machine(backend, workload.resources, clock).value();
  const auto model = make_model(workload.model);
  const auto engine = Engine::create(*model, *machine.device, {.cache = 64}).value();
  ASSERT_TRUE(load_weights(engine->executor(), folder).ok());

  const std::vector<std::int32_t> prompt = tokens_at(told, "prompt"), greedy = tokens_at(told, "greedy");
  ASSERT_EQ(greedy.size(), 30u);
  const Tokenizer tokenizer = tokenizer_of(folder, workload.model).value();
  Encoder encoder(tokenizer);
  std::vector<std::int32_t> encoded;
  if (name != "gpt2") encoded.push_back(tokenizer.bos());
  encoder.encode(told.find("text")->text(), encoded);
  EXPECT_EQ(encoded, prompt);

  const std::span<const Node> rows = told.find("logits")->items();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t length = prompt.size() - rows.size() + 1 + i;
    ASSERT_TRUE(engine->prefill(0, std::span(prompt).first(length)).ok());
    expect_logits(rows[i], engine->logits(0));
  }
  std::vector<std::int32_t> drawn;
  for (std::size_t i = 0; i < greedy.size(); ++i) {
    const std::span<const float> logits = engine->logits(0).subspan(0, 300);  // beyond the tokenizer: padding
    drawn.push_back(static_cast<std::int32_t>(std::max_element(logits.begin() + 2, logits.end()) - logits.begin()));
    const Engine::Next next[] = {{0, drawn.back()}};
    ASSERT_TRUE(engine->decode(next).ok());
  }
  EXPECT_EQ(drawn, greedy);
}

// A t5 reads the prompt in its encoder; its answer begins with token 0. Logits of the answer's first, second and last
// position, the answer being transformers' own.
class WeightsLogitsOfT5 : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(WeightsLogitsOfT5, AreThoseOfTransformers) {
  const auto& [name, backend] = GetParam();
  const std::string path = folder_of(name);
  const auto store = open_posix_store(path).value();
  const Node told = parse_json(read_text(*store, "expected.json").value(), "expected.json").value();
  const Workload workload = workload_around(path).value();
  const HfFolder folder = open_hf_folder(path, workload.model).value();
  FakeClock clock;
  const Machine machine = open_machine(backend, workload.resources, clock).value();
  const auto model = make_model(workload.model);
  const auto engine = Engine::create(*model, *machine.device, {.cache = 64}).value();
  ASSERT_TRUE(load_weights(engine->executor(), folder).ok());

  const std::vector<std::int32_t> prompt = tokens_at(told, "prompt"), greedy = tokens_at(told, "greedy");
  ASSERT_EQ(greedy.size(), 20u);
  const Tokenizer tokenizer = tokenizer_of(folder, workload.model).value();
  std::vector<std::int32_t> encoded;
  Encoder(tokenizer).encode(told.find("text")->text(), encoded);
  encoded.push_back(tokenizer.eos());
  EXPECT_EQ(encoded, prompt);

  const std::span<const Node> rows = told.find("logits")->items();
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_TRUE(engine->prefill(0, prompt).ok());
  std::vector<std::int32_t> drawn;
  for (std::size_t i = 0; i < greedy.size(); ++i) {
    if (i < 2) expect_logits(rows[i], engine->logits(0));
    // After pad, eos and unk; beyond the tokenizer: padding.
    const auto logits = engine->logits(0).first(static_cast<std::size_t>(tokenizer.vocabulary()));
    drawn.push_back(static_cast<std::int32_t>(std::max_element(logits.begin() + 3, logits.end()) - logits.begin()));
    const Engine::Next next[] = {{0, drawn.back()}};
    ASSERT_TRUE(engine->decode(next).ok());
  }
  expect_logits(rows[2], engine->logits(0));
  EXPECT_EQ(drawn, greedy);
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

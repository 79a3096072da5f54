#include "execute/serve/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "describe/ir/evaluate.h"
#include "describe/models/mlp/mlp.h"
#include "describe/models/t5/t5.h"
#include "execute/serve/testing/tiny_engine.h"

namespace systole {
namespace {

using Tokens = std::vector<std::int32_t>;

// Rotary positions with fast, slow and medium frequencies.
DecoderSpec llama() {
  DecoderSpec config = tiny_decoder();
  config.family = DecoderSpec::Family::llama;
  config.kv_heads = 1;
  config.head = 6;
  config.gated = true;
  config.norm = Norm::rms;
  config.activation = Activation::silu;
  config.position = Position::rotary;
  config.theta = 50;
  config.rope_scaling = {RopeScaling::Kind::llama3, 8, 1, 4, 12};
  config.bias = false;
  config.tied = false;
  return config;
}

class Generate : public testing::Test {
 protected:
  std::unique_ptr<Engine> make_engine(const EngineOptions& options) {
    for (const Parameter& p : model_->parameters()) parameters_[p.name] = sharp_value(p);
    return sharp_engine(*model_, *device_, options);
  }

  // The most likely next token by the full forward graph.
  std::int32_t likeliest_after(const Tokens& tokens) const {
    const auto length = static_cast<std::int64_t>(tokens.size());
    const Graph graph = model_->forward({1, length});
    std::vector<HostTensor> inputs;
    for (const GraphInput& input : graph.inputs()) {
      if (input.parameter) {
        inputs.push_back(parameters_.at(input.name));
        continue;
      }
      HostTensor& row = inputs.emplace_back(DType::i32, Shape{1, length});
      for (std::int64_t i = 0; i < length; ++i) {
        row.set(i, input.name == "tokens"     ? tokens[static_cast<std::size_t>(i)]
                   : input.name == "segments" ? 1
                                              : static_cast<double>(i));
      }
    }
    const HostTensor logits = evaluate(graph, inputs)[0];
    const std::span<const float> last = logits.as<float>().last(static_cast<std::size_t>(model_->vocabulary()));
    return static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin());
  }

  std::unique_ptr<const Model> model_ = make_decoder(tiny_decoder());
  std::unique_ptr<Device> device_ = make_reference_device();
  std::map<std::string, HostTensor> parameters_;
};

const std::vector<Tokens> kPrompts{{1, 5, 2}, {7}, {3, 3, 9, 11, 4}, {12, 1}, {6, 6}};

TEST_F(Generate, greedy_is_the_whole_forward_again_and_again) {
  DecoderSpec windowed = llama();
  windowed.window = 3;
  for (const DecoderSpec& config : {tiny_decoder(), llama(), windowed}) {
    model_ = make_decoder(config);
    const auto engine = make_engine({.slots = 2, .buckets = {2, 4}});
    const auto results = *generate(*engine, kPrompts, {.sampling = {.temperature = 0}, .max_tokens = 5});
    ASSERT_EQ(results.size(), kPrompts.size());
    for (std::size_t i = 0; i < kPrompts.size(); ++i) {
      Tokens expected = kPrompts[i];
      for (int n = 0; n < 5; ++n) expected.push_back(likeliest_after(expected));
      EXPECT_EQ(results[i].tokens,
                Tokens(expected.begin() + static_cast<std::ptrdiff_t>(kPrompts[i].size()), expected.end()))
          << config.name() << " " << i;
      EXPECT_EQ(results[i].end, SequenceEnd::max_tokens);
    }
  }
}

TEST_F(Generate, sampled_sequences_do_not_depend_on_slots_or_buckets) {
  const GenerateOptions options{.sampling = {.temperature = 1.5, .top_k = 8, .seed = 4}, .max_tokens = 6, .stop = {2}};
  const auto alone = *generate(*make_engine({.slots = 1}), kPrompts, options);
  const auto together = *generate(*make_engine({.slots = 3, .buckets = {5}}), kPrompts, options);
  for (std::size_t i = 0; i < kPrompts.size(); ++i) {
    EXPECT_EQ(alone[i].tokens, together[i].tokens) << i;
    EXPECT_EQ(alone[i].end, together[i].end) << i;
  }
  GenerateOptions other = options;
  other.sampling.seed = 5;
  const auto reseeded = *generate(*make_engine({.slots = 1}), kPrompts, other);
  EXPECT_TRUE(std::any_of(kPrompts.begin(), kPrompts.end(), [&, i = std::size_t{0}](const Tokens&) mutable {
    const bool differs = alone[i].tokens != reseeded[i].tokens;
    ++i;
    return differs;
  }));
}

TEST_F(Generate, ends_by_stop_token_full_cache_and_request) {
  const auto engine = make_engine({.slots = 1});
  const GenerateOptions greedy{.sampling = {.temperature = 0}, .max_tokens = 100};
  const std::vector<Tokens> prompt{{1, 5, 2}};
  const auto full = (*generate(*engine, prompt, greedy))[0];
  EXPECT_EQ(full.end, SequenceEnd::cache_full);
  EXPECT_EQ(full.tokens.size(), 12U - 3 + 1);  // the last token is drawn although the cache cannot store it
  GenerateOptions stopping = greedy;
  stopping.stop = {full.tokens[2]};
  const auto stopped = (*generate(*engine, prompt, stopping))[0];
  EXPECT_EQ(stopped.end, SequenceEnd::stop);
  EXPECT_LE(stopped.tokens.size(), 2U);
  stopping.min_tokens = 6;
  const auto longer = (*generate(*engine, prompt, stopping))[0];
  EXPECT_GE(longer.tokens.size(), 6U);
  EXPECT_EQ(std::count(longer.tokens.begin(), longer.tokens.end(), stopping.stop[0]), 0);
  std::size_t seen = 0;
  const auto asked = *generate(*engine, std::vector<Tokens>{prompt[0], prompt[0]}, greedy,
                               [&](std::size_t sequence, std::int32_t token) {
                                 EXPECT_EQ(sequence, 0U);
                                 EXPECT_EQ(token, full.tokens[seen]);
                                 return ++seen < 3;
                               });
  EXPECT_EQ(asked[0].tokens.size(), 3U);
  EXPECT_EQ(asked[0].end, SequenceEnd::asked);
  EXPECT_TRUE(asked[1].tokens.empty());
  EXPECT_EQ(asked[1].end, SequenceEnd::asked);
}

TEST_F(Generate, decoding_one_slot_leaves_the_others_alone) {
  const auto engine = make_engine({.slots = 2});
  const auto decode = [&](std::int64_t slot, std::int32_t token) {
    const Engine::Next next[] = {{slot, token}};
    engine->decode(next).value();
  };
  engine->prefill(1, kPrompts[0]).value();
  decode(1, 4);
  const std::vector<float> expected(engine->logits(1).begin(), engine->logits(1).end());
  engine->prefill(1, kPrompts[0]).value();
  engine->prefill(0, kPrompts[2]).value();
  const std::vector<float> prompted(engine->logits(1).begin(), engine->logits(1).end());
  for (const std::int32_t token : {8, 9, 10}) decode(0, token);
  EXPECT_EQ(prompted, std::vector<float>(engine->logits(1).begin(), engine->logits(1).end()));
  EXPECT_EQ(engine->length(1), 3);
  decode(1, 4);
  EXPECT_EQ(expected, std::vector<float>(engine->logits(1).begin(), engine->logits(1).end()));
}

TEST_F(Generate, a_prompt_in_any_pieces_has_the_same_logits) {
  const Tokens prompt{1, 5, 2, 9, 4, 4, 7, 3, 12, 0, 6};
  const auto logits_of = [&](const EngineOptions& options, const std::vector<std::size_t>& cuts) {
    const auto engine = make_engine(options);
    engine->begin(options.slots - 1, 0);
    std::size_t at = 0;
    for (const std::size_t cut : cuts) {
      EXPECT_TRUE(engine->extend(options.slots - 1, std::span(prompt).subspan(at, cut)).ok());
      at += cut;
    }
    const auto logits = engine->logits(options.slots - 1);
    return std::vector<float>(logits.begin(), logits.end());
  };
  const std::vector<float> whole = logits_of({.slots = 1}, {11});
  EXPECT_EQ(logits_of({.slots = 3}, {5, 1, 5}), whole);
  EXPECT_EQ(logits_of({.slots = 2, .buckets = {3}}, {11}), whole);
  EXPECT_EQ(logits_of({.slots = 1, .buckets = {1, 2}}, {8, 3}), whole);
  const auto engine = make_engine({.slots = 1});
  engine->prefill(0, prompt).value();
  const Status full = engine->extend(0, Tokens{1, 2});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().message, "2 tokens for slot 0, which has room for 1");
}

TEST_F(Generate, the_cache_is_one_and_changed_in_place) {
  const auto engine = make_engine({.slots = 2, .buckets = {4}});
  const Program& program = engine->program();
  EXPECT_EQ(memory_by_owner(program)[Residence::cache],
            Bytes(2 * 2 * 2 * 12 * 8 * 4));  // k and v, layers, slots, positions, width, f32
  ASSERT_EQ(program.functions.size(), 3U);   // a piece of 4, and steps of one and two sequences
  for (const Function& function : program.functions) EXPECT_EQ(function.aliases.size(), 2U) << function.name;
}

TEST_F(Generate, refusals_say_what_is_wrong) {
  const auto engine = make_engine({.slots = 1});
  const auto message = [&](const std::vector<Tokens>& prompts, const GenerateOptions& options) {
    const auto result = generate(*engine, prompts, options);
    return result.ok() ? std::string("accepted") : result.error().message;
  };
  EXPECT_EQ(message({{1}, {}}, {}), "prompt 2: a prompt without tokens");
  EXPECT_EQ(message({Tokens(13, 1)}, {}), "prompt 1: a prompt of 13 tokens for a cache of 12");
  EXPECT_EQ(message({{1, 13}}, {}), "prompt 1: token 13 is outside the model's vocabulary of 13");
  EXPECT_NE(message({{1}}, {.sampling = {.top_p = 2}}).find("top_p"), std::string::npos);
  EXPECT_NE(message({{1}}, {.max_tokens = -1}).find("max_tokens"), std::string::npos);
  const Engine::Next twice[] = {{0, 1}, {0, 2}};
  EXPECT_TRUE(engine->prefill(0, Tokens{1}).ok());
  EXPECT_FALSE(engine->decode(twice).ok());
  EXPECT_EQ(Engine::create(*make_mlp({.inputs = 2, .outputs = 1}), *device_, {}).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(Engine::create(*model_, *device_, {.cache = 13}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(Engine::create(*model_, *device_, {.slots = 0}).error().kind, ErrorKind::invalid);
}

T5Spec tiny_t5() {
  T5Spec config;
  config.layers = 2;
  config.width = 8;
  config.heads = 2;
  config.head = 3;
  config.mlp = 12;
  config.vocabulary = 13;
  config.context = 10;
  config.target_context = 7;
  config.relative_buckets = 8;
  config.relative_furthest = 5;
  return config;
}

class GenerateT5 : public Generate {
 protected:
  GenerateT5() { model_ = make_t5(tiny_t5()); }

  // The most likely token after this beginning of an answer, by the full forward graph.
  std::int32_t likeliest_after(const Tokens& prompt, const Tokens& answer) const {
    const auto source = static_cast<std::int64_t>(prompt.size()), target = static_cast<std::int64_t>(answer.size()) + 1;
    const Graph graph = model_->forward({1, source, target});
    std::vector<HostTensor> inputs;
    for (const GraphInput& input : graph.inputs()) {
      if (input.parameter) {
        inputs.push_back(parameters_.at(input.name));
        continue;
      }
      HostTensor& row = inputs.emplace_back(DType::i32, graph.type(input.value).shape);
      for (std::int64_t i = 0; i < row.size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        row.set(i, input.name == "tokens"          ? prompt[at]
                   : input.name != "target_tokens" ? 1
                   : i == 0                        ? 0
                                                   : answer[at - 1]);
      }
    }
    const HostTensor logits = evaluate(graph, inputs)[0];
    const std::span<const float> last = logits.as<float>().last(static_cast<std::size_t>(model_->vocabulary()));
    return static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin());
  }
};

TEST_F(GenerateT5, greedy_is_the_whole_forward_again_and_again) {
  const auto engine = make_engine({.slots = 2, .buckets = {2, 4}});
  const auto results = *generate(*engine, kPrompts, {.sampling = {.temperature = 0}, .max_tokens = 5});
  ASSERT_EQ(results.size(), kPrompts.size());
  std::set<Tokens> answers;
  for (std::size_t i = 0; i < kPrompts.size(); ++i) {
    Tokens expected;
    for (int n = 0; n < 5; ++n) expected.push_back(likeliest_after(kPrompts[i], expected));
    EXPECT_EQ(results[i].tokens, expected) << i;
    EXPECT_EQ(results[i].end, SequenceEnd::max_tokens);
    answers.insert(expected);
  }
  EXPECT_GT(answers.size(), 1U) << "all prompts have one answer: they are not read";
}

TEST_F(GenerateT5, an_answer_ends_with_its_own_cache_not_the_prompts) {
  const auto engine = make_engine({.slots = 1});
  const std::vector<Tokens> prompts{{1, 5, 2, 3, 4, 6, 7, 8, 9, 10}};
  const auto full = (*generate(*engine, prompts, {.sampling = {.temperature = 0}, .max_tokens = 100}))[0];
  EXPECT_EQ(full.end, SequenceEnd::cache_full);
  EXPECT_EQ(full.tokens.size(), 7U);
  const auto longer = generate(*engine, std::vector<Tokens>{Tokens(11, 1)}, {});
  EXPECT_EQ(longer.error().message, "prompt 1: a prompt of 11 tokens for a cache of 10");
}

TEST_F(GenerateT5, has_no_drafts) {
  EXPECT_EQ(Engine::create(*model_, *device_, {.drafts = 3}).error().kind, ErrorKind::unsupported);
}

// As transformers has it: the penalty looks at the decoder's tokens.
TEST_F(GenerateT5, an_answer_may_repeat_the_prompt_without_a_penalty) {
  const auto engine = make_engine({.slots = 2});
  const std::vector<Tokens> prompts{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 1};
  const auto plain = *generate(*engine, prompts, options);
  options.sampling.repetition_penalty = 100;
  const auto penalized = *generate(*engine, prompts, options);
  for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(plain[i].tokens, penalized[i].tokens) << i;
}

TEST_F(GenerateT5, keys_and_values_in_bf16_are_refused) {
  const auto refused = Engine::create(*model_, *device_, {.slots = 2, .cache_type = DType::bf16});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported) << refused.error().message;
  EXPECT_NE(refused.error().hint.find("leave out --cache-type"), std::string::npos) << refused.error().hint;
}

TEST_F(GenerateT5, the_caches_are_changed_in_place) {
  const auto engine = make_engine({.slots = 2, .buckets = {4}});
  const Program& program = engine->program();
  // Two layers, two slots, two heads of width 3: keys and values of 7 decoder and 10 encoder positions, and two
  // lengths, each padded to 64 bytes.
  const auto placed = [](std::int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const std::int64_t position = 2 * 2 * 2 * 3 * 4;
  EXPECT_EQ(memory_by_owner(program)[Residence::cache],
            Bytes(2 * placed(7 * position) + 2 * placed(10 * position) + placed(2 * 4)));
  for (const Function& function : program.functions)
    EXPECT_EQ(function.aliases.size(), function.name == decode_name(2) ? 2U : 5U) << function.name;
}

}  // namespace
}  // namespace systole

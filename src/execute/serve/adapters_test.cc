// LoRA adapters by sequence: an adapter's answers are those of a model with the adapter merged into its weights; other
// sequences keep their bits; and what was computed of a prompt with one adapter is not used with another.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "describe/models/t5/t5.h"
#include "execute/serve/testing/serving_loop_fixture.h"

namespace systole {
namespace {

const ServedAdapters kAdapters{2, 3, {"attn.o", "attn.q", "mlp.up"}};

// Of adapter k from 0 on: [rank, width] of a layer.
double number(std::int64_t k, std::int64_t layer, std::int64_t r, std::int64_t i, double phase) {
  const auto at = static_cast<double>(((k * 7 + layer) * 5 + r) * 31 + i);
  return 0.5 * std::sin(1.7 * at + phase);
}

// Fills the tensors [layer, adapter, rank, width]; both kinds by their own phase.
void fill_adapters(Engine& engine) {
  for (std::size_t v = 0; v < engine.program().values.size(); ++v) {
    const ProgramValue& value = engine.program().values[v];
    if (!is_served_adapter(value.name)) continue;
    HostTensor tensor(value.type.dtype, value.type.shape);
    const Shape& shape = value.type.shape;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const std::int64_t row = i / shape[3], r = row % shape[2], k = row / shape[2] % shape[1];
      tensor.set(i, number(k, row / shape[2] / shape[1], r, i % shape[3], value.name.ends_with(".a") ? 0 : 2));
    }
    engine.executor().write(static_cast<int>(v), 0, tensor.bytes()).value();
  }
}

std::unique_ptr<Engine> adapted_engine(const Model& model, Device& device, EngineOptions options) {
  options.adapters = kAdapters;
  std::unique_ptr<Engine> engine = sharp_engine(model, device, options);
  fill_adapters(*engine);
  return engine;
}

// W + Σ_r a[r] b[r] in place of each W that an adapter changes, [layer, inputs, outputs].
std::unique_ptr<Engine> merged_engine(const Model& model, Device& device, std::int64_t k) {
  std::unique_ptr<Engine> engine = sharp_engine(model, device, {});
  for (const std::string& name : kAdapters.projections) {
    const auto parameter = std::ranges::find(model.parameters(), "blocks.{layer}." + name, &Parameter::name);
    HostTensor w = sharp_value(*parameter);
    const std::int64_t layers = w.shape()[0],
                       outputs = name == "attn.o" ? w.shape()[3] : w.size() / layers / w.shape()[1],
                       inputs = w.size() / layers / outputs;
    for (std::int64_t n = 0; n < w.size(); ++n) {
      const std::int64_t layer = n / (inputs * outputs), i = n / outputs % inputs, o = n % outputs;
      double sum = w.at(n);
      for (std::int64_t r = 0; r < kAdapters.rank; ++r) sum += number(k, layer, r, i, 0) * number(k, layer, r, o, 2);
      w.set(n, sum);
    }
    engine->executor().write(engine->program().value_named(parameter->name), 0, w.bytes()).value();
  }
  return engine;
}

double largest(std::span<const float> numbers) {
  double most = 0;
  for (const float x : numbers) most = std::max(most, std::abs(double{x}));
  return most;
}

double farthest(std::span<const float> a, std::span<const float> b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::int32_t likeliest(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
}

// The roundings of both are those of f32 (6e-8), of sums of at most 12 terms in a dozen products that follow each other,
// about 1e-5 of the largest; norms and attention may make them a few times as large.
constexpr double kTolerance = 1e-4;

TEST(ServedAdapters, AnswerAsTheModelWithTheAdapterMerged) {
  const auto model = make_decoder(tiny_decoder());
  const auto device = make_reference_device();
  const auto engine = adapted_engine(*model, *device, {.slots = 2});
  const auto plain = sharp_engine(*model, *device, {});
  for (std::int64_t k = 0; k < kAdapters.count; ++k) {
    const auto merged = merged_engine(*model, *device, k);
    for (std::int32_t first = 0; first < 4; ++first) {
      const std::vector<std::int32_t> prompt{first, 7, 3};
      engine->set_adapter(1, k + 1);
      engine->prefill(1, prompt).value();
      merged->prefill(0, prompt).value();
      plain->prefill(0, prompt).value();
      EXPECT_GT(farthest(engine->logits(1), plain->logits(0)), 0.01 * largest(plain->logits(0))) << "no adapter";
      for (int step = 0; step < 6; ++step) {
        const std::span<const float> want = merged->logits(0), got = engine->logits(1);
        EXPECT_LT(farthest(got, want), kTolerance * largest(want)) << k << " " << first << " step " << step;
        const std::int32_t token = likeliest(want);
        EXPECT_EQ(likeliest(got), token) << k << " " << first << " step " << step;
        merged->decode(std::vector<Engine::Next>{{0, token}}).value();
        engine->decode(std::vector<Engine::Next>{{1, token}}).value();
      }
    }
  }
}

// Slot 0 has no adapter, slots 1 and 2 have the two.
TEST(ServedAdapters, KeepTheBitsOfSequencesBesideThem) {
  const auto model = make_decoder(tiny_decoder());
  const auto device = make_reference_device();
  const auto together = adapted_engine(*model, *device, {.slots = 3, .buckets = {4, 8}});
  const auto plain = sharp_engine(*model, *device, {.buckets = {8}});
  const auto alone = adapted_engine(*model, *device, {.buckets = {8}});
  alone->set_adapter(0, 2);
  const std::vector<std::int32_t> prompt{5, 1, 2};
  for (std::int64_t slot = 0; slot < 3; ++slot) {
    together->set_adapter(slot, slot);
    together->prefill(slot, prompt).value();
  }
  plain->prefill(0, prompt).value();
  alone->prefill(0, prompt).value();
  for (std::int32_t step = 0; step < 6; ++step) {
    EXPECT_TRUE(same_bits(together->logits(0), plain->logits(0))) << "step " << step;
    EXPECT_TRUE(same_bits(together->logits(2), alone->logits(0))) << "step " << step;
    EXPECT_FALSE(same_bits(together->logits(1), together->logits(2))) << "step " << step;
    const std::int32_t token = step % 13;
    together->decode(std::vector<Engine::Next>{{2, token}, {0, token}, {1, token}}).value();
    plain->decode(std::vector<Engine::Next>{{0, token}}).value();
    alone->decode(std::vector<Engine::Next>{{0, token}}).value();
  }
}

TEST(ServedAdapters, StayInF32BesideWeightsInInt8) {
  const auto model = make_decoder(tiny_decoder());
  const auto device = make_reference_device();
  const auto made = [&](const ServedAdapters& adapters) {
    std::unique_ptr<Engine> engine =
        Engine::create(*model, *device, {.slots = 2, .parameter = DType::i8, .adapters = adapters}).value();
    EXPECT_FALSE(engine->int8_weights().empty());
    for (std::size_t v = 0; v < engine->program().values.size(); ++v) {
      const ProgramValue& value = engine->program().values[v];
      if (value.residence != Residence::parameter) continue;
      if (is_served_adapter(value.name)) { EXPECT_EQ(value.type.dtype, DType::f32) << value.name; }
      HostTensor tensor(value.type.dtype, value.type.shape);
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const auto whole = static_cast<double>(i * 37 % 255 - 127);
        tensor.set(i, value.type.dtype == DType::i8 ? whole : 0.01 + 0.0001 * whole);
      }
      engine->executor().write(static_cast<int>(v), 0, tensor.bytes()).value();
    }
    fill_adapters(*engine);
    return engine;
  };
  const auto adapted = made(kAdapters), plain = made({});
  adapted->set_adapter(1, 1);
  const std::vector<std::int32_t> prompt{5, 1, 2};
  for (std::int64_t slot = 0; slot < 2; ++slot) adapted->prefill(slot, prompt).value();
  plain->prefill(0, prompt).value();
  EXPECT_TRUE(same_bits(adapted->logits(0), plain->logits(0)));
  EXPECT_FALSE(same_bits(adapted->logits(1), plain->logits(0)));
  adapted->decode(std::vector<Engine::Next>{{0, 4}, {1, 4}}).value();
  plain->decode(std::vector<Engine::Next>{{0, 4}}).value();
  EXPECT_TRUE(same_bits(adapted->logits(0), plain->logits(0)));
  EXPECT_FALSE(same_bits(adapted->logits(1), plain->logits(0)));
}

TEST(ServedAdapters, AreRefusedWhereNothingCanHaveThem) {
  const auto device = make_reference_device();
  T5Spec spec;
  spec.layers = 1;
  spec.width = 8;
  spec.heads = 2;
  spec.mlp = 12;
  spec.vocabulary = 13;
  spec.context = 10;
  spec.target_context = 8;
  const auto t5 = Engine::create(*make_t5(spec), *device, {.adapters = kAdapters});
  ASSERT_FALSE(t5.ok());
  EXPECT_EQ(t5.error().kind, ErrorKind::unsupported);
  const auto unknown = Engine::create(*make_decoder(tiny_decoder()), *device, {.adapters = {1, 2, {"mlp.gate"}}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("'mlp.gate'"), std::string::npos) << unknown.error().message;
}

using ServedAdapterPages = ServingLoopPages;

// 40 tokens are two whole pages and more.
TEST_F(ServedAdapterPages, ArePagesOfOneAdapterAlone) {
  const Tokens prompt = text(40, 1);
  const auto of = [&](std::uint64_t id, std::int64_t adapter) {
    SequenceRequest asked = request(id, prompt);
    asked.sampling.seed = 1;
    asked.draw = 1;
    asked.adapter = adapter;
    return asked;
  };
  const auto fresh = [&](std::int64_t adapter) {
    const auto own = adapted_engine(*model_, *device_, {.slots = 1});
    ServingLoop loop(*own, {});
    Answer answer;
    loop.add(of(1, adapter), into(answer)).value();
    while (loop.step().value()) {}
    return answer;
  };
  const auto shared = adapted_engine(*model_, *device_, {.slots = 2});
  ServingLoop loop(*shared, {});
  struct Turn {
    std::int64_t adapter, cached;  // of tokens of prompts, in all
  };
  std::uint64_t id = 1;
  for (const Turn& turn : {Turn{0, 0}, Turn{1, 0}, Turn{2, 0}, Turn{1, 32}, Turn{0, 64}}) {
    Answer answer;
    loop.add(of(id++, turn.adapter), into(answer)).value();
    while (loop.step().value()) {}
    EXPECT_EQ(loop.counts().cached, turn.cached) << "request " << id;
    EXPECT_TRUE(answer == fresh(turn.adapter)) << "request " << id;
  }
}

}  // namespace
}  // namespace systole

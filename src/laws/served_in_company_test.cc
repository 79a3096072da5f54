// On the cpu backend as models are served, a sequence's logits have the same bits alone and in company, in any pieces and
// for any number of threads. In f32 the device is exact, with keys and values in bf16 too; with weights in int8 or
// int4 any device does, since sums of integers do not depend on the number of rows, and groups are added in one order. And what the engine's Program plans is what its
// functions do.

#include <gtest/gtest.h>

#include "describe/models/decoder/decoder.h"
#include "execute/backends/cpu/cpu.h"
#include "execute/backends/reference/reference.h"
#include "execute/runtime/initialize.h"
#include "execute/runtime/testing/expect_planned_work.h"
#include "execute/serve/int8_loader.h"

namespace systole {
namespace {

// In int4 with matrices of whole groups and panels.
DecoderSpec llama(DType parameter) {
  DecoderSpec spec;
  spec.family = DecoderSpec::Family::llama;
  spec.layers = 2;
  spec.width = 72;  // neither a multiple of a tile's 64 bytes, nor of 16 rows
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head = 18;
  spec.mlp = 600;  // more than one range of a sum (kernels/gemm.h)
  spec.gated = true;
  spec.norm = Norm::rms;
  spec.activation = Activation::silu;
  spec.position = Position::rotary;
  spec.bias = false;
  if (parameter == kInt4) {
    spec.width = 96;
    spec.head = 24;
    spec.mlp = 608;
  }
  spec.vocabulary = 90;
  spec.context = 48;
  return spec;
}

struct Served {
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
};

Served serve(const Model& model, cpu::Isa isa, int threads, const EngineOptions& asked) {
  CpuOptions options;
  options.isa = isa;
  options.threads = threads;
  options.exact = asked.parameter == DType::f32;
  Served served{make_cpu_device(options).value(), {}};
  served.engine = Engine::create(model, *served.device, asked).value();
  const auto host = make_reference_device();
  const LoadSome load = [](Executor& executor) -> Status {
    TRY(initialize(executor, 5));
    for (float& weight :
         std::span(reinterpret_cast<float*>(executor.view(0, 0).data()), executor.view(0, 0).size() / sizeof(float)))
      weight *= 8;  // far from uniform
    return {};
  };
  if (is_packed_type(asked.parameter)) {
    load_int8(*served.engine, model, DType::f32, load, *host).value();
  } else {
    load(served.engine->executor()).value();
  }
  return served;
}

std::vector<float> logits_of(const Engine& engine, std::int64_t slot) {
  return {engine.logits(slot).begin(), engine.logits(slot).end()};
}

// Logits after the prompt and after each of five tokens, in the last slot, beside sequences in all others.
std::vector<std::vector<float>> in_company(Engine& engine, std::span<const std::int32_t> prompt) {
  const std::int64_t own = engine.slots() - 1;
  for (std::int64_t slot = 0; slot < own; ++slot)
    engine.prefill(slot, std::vector<std::int32_t>{static_cast<std::int32_t>(slot * 4), 7}).value();
  engine.prefill(own, prompt).value();
  std::vector<std::vector<float>> seen{logits_of(engine, own)};
  for (std::int32_t step = 0; step < 5; ++step) {
    std::vector<Engine::Next> next;
    for (std::int64_t slot = 0; slot < own; ++slot)
      next.push_back({slot, static_cast<std::int32_t>((slot * 11 + step) % 90)});
    next.push_back({own, step * 17});
    engine.decode(next).value();
    seen.push_back(logits_of(engine, own));
  }
  return seen;
}

// The types of weights, and of keys and values.
struct Kept {
  const char* name;
  DType parameter, cache;
};

class ServedInCompany : public testing::TestWithParam<Kept> {
 protected:
  static EngineOptions kept() {
    EngineOptions options;
    options.parameter = GetParam().parameter;
    options.cache_type = GetParam().cache;
    return options;
  }
};

TEST_P(ServedInCompany, a_sequence_has_the_same_bits_alone_in_any_company_and_in_any_pieces) {
  const auto model = make_decoder(llama(GetParam().parameter));
  std::vector<std::int32_t> prompt;
  for (std::int32_t i = 0; i < 37; ++i) prompt.push_back((i * 29 + 3) % 90);
  for (const cpu::Isa isa : {cpu::Isa::avx2, cpu::Isa::avx512}) {
    if (!cpu::supports(isa)) continue;
    SCOPED_TRACE(cpu::name_of(isa));
    std::vector<std::vector<float>> alone;
    for (const std::int64_t slots : {1, 3, 6, 20}) {
      for (const int threads : {1, 2}) {
        for (const std::vector<std::int64_t>& buckets : {std::vector<std::int64_t>{}, {5}, {1, 9}}) {
          EngineOptions options = kept();
          options.slots = slots;
          options.buckets = buckets;
          const Served served = serve(*model, isa, threads, options);
          const std::vector<std::vector<float>> seen = in_company(*served.engine, prompt);
          if (alone.empty()) alone = seen;
          EXPECT_TRUE(seen == alone) << slots << " slots, " << threads << " threads, pieces "
                                     << (buckets.empty() ? 0 : buckets.back());
        }
      }
    }
    EXPECT_FALSE(alone.at(1) == alone.at(2)) << "all logits are alike";
  }
}

// A decode with drafts has several rows of a slot. Each has the bits that it has when it comes alone, and wrong drafts leave
// nothing behind.
TEST_P(ServedInCompany, drafts_have_the_bits_of_tokens_that_come_one_by_one) {
  const auto model = make_decoder(llama(GetParam().parameter));
  std::vector<std::int32_t> prompt;
  for (std::int32_t i = 0; i < 19; ++i) prompt.push_back((i * 29 + 3) % 90);
  for (const cpu::Isa isa : {cpu::Isa::avx2, cpu::Isa::avx512}) {
    if (!cpu::supports(isa)) continue;
    SCOPED_TRACE(cpu::name_of(isa));
    EngineOptions options = kept();
    const Served plain = serve(*model, isa, 1, options);
    plain.engine->prefill(0, prompt).value();
    std::vector<std::vector<float>> expected;
    for (const std::int32_t token : {8, 30, 51, 2, 77, 8, 30, 64}) {
      plain.engine->decode(std::vector<Engine::Next>{{0, token}}).value();
      expected.push_back(logits_of(*plain.engine, 0));
    }
    options.slots = 2;
    options.drafts = 7;
    const Served drafting = serve(*model, isa, 2, options);
    Engine& engine = *drafting.engine;
    engine.prefill(0, std::vector<std::int32_t>{5}).value();
    engine.prefill(1, prompt).value();
    // The first three tokens, then two that are wrong, beside another sequence with a draft; then the others.
    engine.decode(std::vector<Engine::Next>{{0, 6}, {0, 7}, {1, 8}, {1, 30}, {1, 51}, {1, 9}, {1, 9}}).value();
    const auto equals = [&](std::size_t row, std::size_t i) {
      const std::span<const float> seen = engine.logits_after(row);
      return std::vector<float>(seen.begin(), seen.end()) == expected[i];
    };
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(equals(2 + i, i)) << i;
    EXPECT_EQ(engine.length(1), 24);
    engine.begin(1, 22);
    engine.decode(std::vector<Engine::Next>{{1, 2}, {1, 77}, {1, 8}, {1, 30}, {1, 64}}).value();
    for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(equals(i, 3 + i)) << i;
    EXPECT_TRUE(logits_of(engine, 1) == expected.back());
    EXPECT_FALSE(expected[0] == expected[5]) << "a token has the same logits wherever it stands";
  }
}

// The log likelihood of each token, of a text that is scored at once, in pieces, and in two parts.
TEST_P(ServedInCompany, log_likelihoods_have_the_same_bits_in_any_pieces) {
  const auto model = make_decoder(llama(GetParam().parameter));
  std::vector<std::int32_t> text;
  for (std::int32_t i = 0; i < 38; ++i) text.push_back((i * 29 + 3) % 90);
  const auto tokens = std::span<const std::int32_t>(text).first(37),
             next = std::span<const std::int32_t>(text).last(37);
  std::vector<float> alone;
  for (const int threads : {1, 2}) {
    for (const std::vector<std::int64_t>& buckets : {std::vector<std::int64_t>{}, {5}, {1, 9}}) {
      EngineOptions options = kept();
      options.buckets = buckets;
      options.score = true;
      options.generates = threads == 1;
      const Served served = serve(*model, cpu::best_isa(), threads, options);
      for (const std::size_t first : {37, 1, 20}) {
        served.engine->begin(0, 0);
        const auto begun = served.engine->score(0, tokens.first(first), next.first(first)).value();
        std::vector<float> seen(begun.begin(), begun.end());
        if (first < 37) {
          const auto rest = served.engine->score(0, tokens.subspan(first), next.subspan(first)).value();
          seen.insert(seen.end(), rest.begin(), rest.end());
        }
        if (alone.empty()) alone = seen;
        EXPECT_TRUE(seen == alone) << threads << " threads, pieces " << (buckets.empty() ? 0 : buckets.back())
                                   << ", first " << first;
      }
    }
  }
  EXPECT_FALSE(alone.at(1) == alone.at(2)) << "all are alike";
}

TEST_P(ServedInCompany, PlanIsRun_of_every_function_of_the_engine) {
  const auto model = make_decoder(llama(GetParam().parameter));
  EngineOptions options = kept();
  options.slots = 3;
  options.score = true;
  const Served served = serve(*model, cpu::best_isa(), 2, options);
  Engine& engine = *served.engine;
  std::vector<std::int32_t> prompt(40, 7);
  for (std::int64_t slot = 0; slot < 3; ++slot)
    engine.prefill(slot, std::span(prompt).first(static_cast<std::size_t>(9 + slot * 14))).value();
  for (std::size_t sequences = 1; sequences <= 3; ++sequences) {
    std::vector<Engine::Next> next;
    for (std::size_t i = 0; i < sequences; ++i) next.push_back({static_cast<std::int64_t>(i), 5});
    engine.decode(next).value();
  }
  for (const std::size_t length : {9, 40}) {
    engine.begin(0, 0);
    engine.score(0, std::span(prompt).first(length), std::span(prompt).first(length)).value();
  }
  const Program& program = engine.program();
  ASSERT_EQ(program.functions.size(), 7U);  // score.16 and .48, prefill.16 and .48, decode.1, .2 and .3
  for (std::size_t f = 0; f < program.functions.size(); ++f) {
    SCOPED_TRACE(program.functions[f].name);
    const std::int64_t times = program.functions[f].name == prefill_name(48) ? 2 : 1;
    expect_planned_work(program.functions[f].work * times, engine.executor().counters()[f]);
  }
}

INSTANTIATE_TEST_SUITE_P(In, ServedInCompany,
                         testing::Values(Kept{"f32", DType::f32, DType::f32}, Kept{"i8", DType::i8, DType::f32},
                                         Kept{"i4", kInt4, DType::f32}, Kept{"f32_over_bf16", DType::f32, DType::bf16}),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace systole

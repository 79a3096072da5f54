#include "describe/models/decoder/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "describe/ir/text.h"
#include "describe/ir/verify.h"
#include "describe/ir/work.h"
#include "describe/models/decoder/parameters.h"
#include "describe/models/decoder/testing/tiny_decoder.h"

namespace systole {
namespace {

using Data = std::map<std::string, HostTensor>;

TEST(Decoder, parameters_carry_names_inits_and_decay) {
  DecoderSpec config = tiny_decoder();
  config.tied = false;
  const auto model = make_decoder(config);
  for (const Parameter& p : model->parameters()) {
    EXPECT_TRUE(p.trainable) << p.name;
    for (const std::string& name : p.type.names()) EXPECT_NE(name, "") << p.name;
    const bool vector = p.name.ends_with("bias") || p.name.ends_with("scale");
    EXPECT_EQ(p.decay, !vector) << p.name;
    const bool residual = p.name.ends_with("attn.o") || p.name.ends_with("mlp.down");
    EXPECT_DOUBLE_EQ(p.init.scale, vector ? 0 : residual ? 0.02 / std::sqrt(6.0) : 0.02) << p.name;
  }
  EXPECT_EQ(to_string(model->parameters()[4].type), "f32[layer=3, embed=12, heads=3, head=4]");
  EXPECT_EQ(model->parameters()[4].name, "blocks.{layer}.attn.q");
}

TEST(Decoder, llama_has_three_matrices_of_feed_forward_and_heads_of_their_own_width) {
  std::map<std::string, std::string> types;
  const auto model = make_decoder(llama_decoder());
  for (const Parameter& p : model->parameters()) types[p.name] = to_string(p.type);
  EXPECT_EQ(types.size(), 2 + 2 + 7 + 1);  // embeddings and head, norms of a block, projections, final norm
  EXPECT_EQ(types["blocks.{layer}.attn.q"], "f32[layer=3, embed=12, heads=4, head=6]");
  EXPECT_EQ(types["blocks.{layer}.attn.v"], "f32[layer=3, embed=12, kv_heads=2, head=6]");
  EXPECT_EQ(types["blocks.{layer}.mlp.gate"], "f32[layer=3, embed=12, mlp=20]");
  EXPECT_EQ(types["head"], "f32[vocab=11, embed=12]");
}

TEST(Decoder, rows_of_no_length_are_as_long_as_the_context) {
  const auto model = make_decoder(tiny_decoder());
  EXPECT_EQ(to_text(model->loss({2}, true)), to_text(model->loss({2, 24}, true)));
  EXPECT_EQ(to_text(model->forward({2})), to_text(model->forward({2, 24})));
  EXPECT_EQ(model->sequence_length(), 24);
}

TEST(Decoder, a_parallel_block_has_one_norm_and_reads_it_twice) {
  const auto model = make_decoder(parallel_decoder());
  for (const Parameter& p : model->parameters()) EXPECT_EQ(p.name.find("norm2"), std::string::npos) << p.name;
  DecoderSpec in_series = parallel_decoder();
  in_series.parallel_blocks = false;
  const auto other = make_decoder(in_series);
  EXPECT_EQ(num_parameters(*other) - num_parameters(*model), 3 * 12);
  const Data data = one_document(1, 6, 11);
  EXPECT_NE(run(model->loss({1, 6}, false), data)[0], run(other->loss({1, 6}, false), data)[0]);
}

// Only tokens within reach of a row's last one change its logits: each of 3 layers reaches 3 tokens further back.
TEST(Decoder, a_window_hides_what_lies_further_back) {
  DecoderSpec config = windowed_decoder();
  const auto logits_of_last = [&](const Data& data, std::int64_t sequence_length) {
    const HostTensor all = run(in_f64(make_decoder(config)->forward({1, sequence_length})), data)[0];
    std::vector<double> last;
    for (std::int64_t v = 0; v < config.vocabulary; ++v)
      last.push_back(all.at((sequence_length - 1) * config.vocabulary + v));
    return last;
  };
  const std::int64_t sequence_length = 16, reach = config.layers * (config.window - 1);
  Data data = one_document(1, sequence_length, config.vocabulary);
  const std::vector<double> before = logits_of_last(data, sequence_length);
  for (const std::int64_t at : {sequence_length - 2 - reach, sequence_length - 1 - reach}) {
    Data changed = data;
    changed["tokens"].set(at, static_cast<double>(static_cast<int>(data["tokens"].at(at) + 1) % 11));
    EXPECT_EQ(logits_of_last(changed, sequence_length) == before, at < sequence_length - 1 - reach) << at;
  }
}

bool generates(const DecoderSpec& config) { return !config.mla.on() && config.moe.every == 1; }

TEST(Decoder, graphs_verify_read_back_and_declare_the_same_parameters) {
  for (DecoderSpec config : all_decoders()) {
    config.dropout = 0.1;
    config.adapters.rank = config.mla.on() ? 0 : 2;
    const auto model = make_decoder(config);
    std::vector<Graph> graphs{model->loss({2, 8}, true), model->loss({2, 8}, false), model->forward({2, 8}),
                              model->hidden({2, 8})};
    if (generates(config)) {
      graphs.push_back(model->step(1, 8, {6, 4, 3}));
      graphs.push_back(model->step(2, 1, {6, 4, 3}));
      graphs.push_back(model->score(8, {6, 4, 3}));
    }
    for (const Graph& graph : graphs) {
      verify(graph);
      EXPECT_EQ(to_text(*parse_graph(to_text(graph), "graph.txt")), to_text(graph));
      const std::vector<Parameter>& parameters = model->parameters();
      ASSERT_GT(graph.inputs().size(), parameters.size());
      for (std::size_t i = 0; i < parameters.size(); ++i) EXPECT_EQ(graph.inputs()[i].parameter, parameters[i]);
    }
  }
}

TEST(Decoder, uniform_logits_lose_ln_vocabulary_a_label) {
  const auto model = make_decoder(tiny_decoder());
  const Graph graph = in_f64(model->loss({2, 8}, true));
  Data data = one_document(2, 8, 11);
  data["labels"].set(3, -1);  // ignored: 15 remain
  std::vector<HostTensor> inputs = arguments(graph, data);
  for (std::size_t i = 0; i < model->parameters().size(); ++i)
    inputs[i] = HostTensor(DType::f64, model->parameters()[i].type.shape);
  EXPECT_NEAR(evaluate(graph, inputs)[0].at(0), 15 * std::log(11.0), 1e-12);
}

TEST(Decoder, unrolled_is_rolled_bit_for_bit) {
  for (DecoderSpec config : all_decoders()) {
    config.dropout = 0.2;
    config.adapters.rank = config.mla.on() ? 0 : 2;
    config.adapters.scale = 0.5;
    const auto rolled = make_decoder(config), unrolled = make_decoder(config, true);
    const Data data = one_document(2, 8, 11);
    EXPECT_EQ(run(rolled->loss({2, 8}, true), data), run(unrolled->loss({2, 8}, true), data));
    if (!generates(config)) continue;
    const PagedCache cache{5, 4, 3};
    const Type pool = rolled->step(2, 1, cache).input_named("cache.k").type();
    const Data next{{"tokens", ints({2, 1}, {4, 9})},
                    {"table", ints({2, 3}, {4, 0, 0, 2, 1, 3})},
                    {"start", ints({2}, {3, 8})},
                    {"cache.k", random_tensor(pool, "k", 0, 1)},
                    {"cache.v", random_tensor(pool, "v", 0, 1)}};
    Data prompt = next;
    prompt["tokens"] = ints({1, 4}, {1, 2, 3, 4});
    prompt["table"] = ints({1, 3}, {2, 1, 3});
    prompt["start"] = ints({1}, {2});
    prompt["last"] = ints({1}, {2});
    EXPECT_EQ(run(rolled->step(1, 4, cache), prompt), run(unrolled->step(1, 4, cache), prompt));
    EXPECT_EQ(run(rolled->step(2, 1, cache), next), run(unrolled->step(2, 1, cache), next));
  }
}

TEST(Decoder, dropout_differs_by_step_site_and_row_and_ends_with_training) {
  DecoderSpec config = tiny_decoder();
  config.dropout = 0.3;
  const auto model = make_decoder(config);
  Data data = one_document(2, 8, 11);
  const HostTensor first = run(model->loss({2, 8}, true), data)[0];
  EXPECT_EQ(first, run(model->loss({2, 8}, true), data)[0]);
  data["step"] = scalar(7);
  EXPECT_NE(first, run(model->loss({2, 8}, true), data)[0]);
  data["step"] = scalar(6);
  data["row"] = scalar(1);
  EXPECT_NE(first, run(model->loss({2, 8}, true), data)[0]);
  EXPECT_EQ(run(make_decoder(tiny_decoder())->loss({2, 8}, false), data), run(model->loss({2, 8}, false), data));
}

TEST(Decoder, adapters_train_alone_and_begin_as_the_base) {
  DecoderSpec config = tiny_decoder();
  const auto base = make_decoder(config);
  config.adapters.rank = 8;
  const auto adapted = make_decoder(config);
  EXPECT_EQ(num_parameters(*adapted) - num_trainable(*adapted), num_parameters(*base));
  // q, k, v and o: 12 + 12 each; up and down: 12 + 20 each.
  EXPECT_EQ(num_trainable(*adapted), 3 * 8 * (4 * 24 + 2 * 32));
  const Data data = one_document(1, 6, 11);
  const Graph graph = in_f64(adapted->loss({1, 6}, true));
  std::vector<HostTensor> inputs = arguments(graph, data);
  const double with_adapters = evaluate(graph, inputs)[0].at(0);
  for (std::size_t i = 0; i < adapted->parameters().size(); ++i) {
    const Parameter& p = adapted->parameters()[i];
    EXPECT_EQ(p.trainable, p.name.find("lora") != std::string::npos);
    if (!p.name.ends_with("lora_b")) continue;
    EXPECT_EQ(p.init.kind, Init::Kind::zeros);
    inputs[i] = HostTensor(DType::f64, p.type.shape);
  }
  const double alone = run(in_f64(base->loss({1, 6}, true)), data)[0].at(0);
  EXPECT_NEAR(evaluate(graph, inputs)[0].at(0), alone, 1e-12);
  EXPECT_GT(std::abs(with_adapters - alone), 1e-3);
}

// The convention: 2 FLOPs per used matmul parameter and token in the forward pass, and the causal half of attention:
// each query sees (sequence_length + 1) / 2 keys on average, at 4 head FLOPs per pair and head.
TEST(Decoder, model_flops_follow_the_convention) {
  for (const DecoderSpec& kind : serving_decoders()) {  // latent attention is in experts_test.cc
    const DecoderSpec config = checked(kind);
    SCOPED_TRACE(config.moe.experts);
    const std::int64_t rows = 2, sequence_length = 8, tokens = rows * sequence_length;
    const std::int64_t heads = 2 * (config.heads + config.kv_heads) * config.head, matrices = config.gated ? 3 : 2;
    const ExpertsSpec& moe = config.moe;
    const std::int64_t used =
        moe.experts == 0 ? 1 : moe.top_k + moe.shared_experts;  // feed-forward parts that process a token
    const std::int64_t block = config.width * (heads + matrices * used * config.mlp + moe.experts);
    const std::int64_t matmul = config.layers * block + config.vocabulary * config.width;
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < sequence_length; ++i)
      pairs += std::min(i + 1, config.window > 0 ? config.window : sequence_length);
    pairs *= config.layers * rows * config.heads;
    EXPECT_EQ(work_of(make_decoder(config)->loss({rows, sequence_length}, true)).model_flops,
              2 * matmul * tokens + 4 * pairs * config.head);
  }
}

std::string message_of(const DecoderSpec& config) {
  try {
    make_decoder(config);
  } catch (const Failure& failure) { return to_string(failure.error()); }
  return "accepted";
}

TEST(Decoder, refusals_name_the_key_and_what_would_do) {
  DecoderSpec config = tiny_decoder();
  config.heads = 5;
  EXPECT_EQ(message_of(config),
            "error: model.heads: 5 does not divide model.width: 12\n  hint: heads may be 1, 2, 3, 4, 6, 12");
  config = tiny_decoder();
  config.kv_heads = 2;
  EXPECT_NE(message_of(config).find("model.kv_heads: 2 does not divide model.heads: 3"), std::string::npos);
  config = tiny_decoder();
  config.adapters = {4, 1, {"atn.q"}};
  EXPECT_NE(message_of(config).find("did you mean 'attn.q'"), std::string::npos);
  config.adapters.targets = {"mlp.gate"};
  EXPECT_NE(message_of(config).find("has no 'mlp.gate'"), std::string::npos) << "not gated";
  config = tiny_decoder();
  config.dropout = 1;
  EXPECT_NE(message_of(config).find("model.dropout"), std::string::npos);
  config = modern_decoder();
  config.head = 5;
  EXPECT_NE(message_of(config).find("even number"), std::string::npos);
  EXPECT_THROW(make_decoder(tiny_decoder())->loss({1, 25}, true), Failure);
  EXPECT_THROW(make_decoder(tiny_decoder())->step(1, 8, {4, 7, 1}), Failure);
  EXPECT_THROW(make_decoder(tiny_decoder())->step(0, 1, {4, 7, 1}), Failure);
  EXPECT_THROW(make_decoder(tiny_decoder())->score(8, {4, 7, 1}), Failure);
  EXPECT_THROW(make_decoder(tiny_decoder())->prefill(1, 8, 8), Failure);
}

}  // namespace
}  // namespace systole

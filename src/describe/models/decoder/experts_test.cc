// What experts promise: who is dropped, what is counted, and what no layout or neighbour may change.

#include "describe/models/decoder/experts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/graph/autodiff.h"
#include "describe/graph/partition/probe.h"
#include "describe/graph/passes/rewrite.h"
#include "describe/graph/work.h"
#include "describe/models/decoder/testing/tiny_decoder.h"

namespace systole {
namespace {

using Data = std::map<std::string, HostTensor>;

TEST(Experts, capacity_is_the_even_share_times_its_factor_and_dropless_the_worst_case) {
  ExpertsConfig config;
  config.count = 8;
  config.top_k = 2;
  EXPECT_EQ(expert_capacity(config, 64, false), 20);  // 64 · 2 / 8 · 1.25
  EXPECT_EQ(expert_capacity(config, 66, false), 21);  // 20.6
  EXPECT_EQ(expert_capacity(config, 1, false), 1);
  config.capacity_factor = 100;
  EXPECT_EQ(expert_capacity(config, 64, false), 64);
  config.capacity_factor = 1;
  EXPECT_EQ(expert_capacity(config, 64, true), 64);
  config.dropless = true;
  EXPECT_EQ(expert_capacity(config, 64, false), 64);
}

HostTensor logits_of(const DecoderConfig& config, const Data& data, std::int64_t rows, std::int64_t seq) {
  return run(in_f64(make_decoder(config)->forward({rows, seq})), data)[0];
}

// Choices without a place, of all layers.
double dropped(const DecoderConfig& config, const Data& data, const BatchShape& shape) {
  const Graph graph = in_f64(make_decoder(config)->forward(shape));
  const std::vector<std::string> globs{"block.*.moe.dropped"};
  const Graph probed = with_probes(graph, probes_matching(graph, globs).value());
  const HostTensor each = run(probed, data)[1];
  double sum = 0;
  for (std::int64_t layer = 0; layer < each.size(); ++layer) sum += each.at(layer);
  return sum;
}

TEST(Experts, capacity_drops_and_dropless_does_not) {
  const Data data = one_document(2, 8, 11);
  DecoderConfig config = mixture_decoder();
  EXPECT_EQ(dropped(config, data, {2, 8}), 0);
  const HostTensor all = logits_of(config, data, 2, 8);
  config.experts.dropless = false;
  config.experts.capacity_factor = 4;  // as many places as tokens
  EXPECT_EQ(dropped(config, data, {2, 8}), 0);
  EXPECT_EQ(logits_of(config, data, 2, 8), all);
  config.experts.capacity_factor = 0.5;  // 2 places an expert: at least half of 16 choices a row are dropped
  EXPECT_GE(dropped(config, data, {2, 8}), 3 * 2 * 8);
  EXPECT_NE(logits_of(config, data, 2, 8), all);
}

// Of both halves of a batch, of all layers; bf16 has eight bits to count with, and is not asked to.
TEST(Experts, training_counts_choices_and_those_dropped) {
  Data data = one_document(2, 8, 11);
  for (std::int64_t i = 13; i < 16; ++i) data["segments"].set(i, 0);
  for (DecoderConfig config : {shared_experts_decoder(), latent_decoder(), interleaved_decoder()}) {
    config.experts.dropless = false;
    config.experts.capacity_factor = 0.5;
    const auto model = make_decoder(config);
    const Graph loss = model->loss({2, 8}, true);
    ASSERT_EQ(loss.outputs().size(), 3U);
    EXPECT_EQ(loss.outputs()[1].name, kExpertChoices);
    EXPECT_EQ(loss.outputs()[2].name, kDroppedChoices);
    const auto counted = run(in_f64(loss), data);
    std::int64_t blocks = 0;
    for (const LayerGroup& group : layer_groups(config))
      blocks += group.period.back().experts.count > 0 ? group.count : 0;
    EXPECT_EQ(counted[1].at(0), static_cast<double>(blocks * 13 * config.experts.top_k));
    EXPECT_EQ(counted[2].at(0), dropped(config, data, {2, 8}));
    EXPECT_GT(counted[2].at(0), 0);
    const Graph narrow = apply_precision(loss, {DType::bf16, DType::bf16, DType::f32, DType::f32});
    EXPECT_EQ(narrow.type(narrow.outputs()[2].value).dtype, DType::f32);
    EXPECT_EQ(run(narrow, data)[1].at(0), counted[1].at(0));
    config.experts.dropless = true;
    EXPECT_EQ(make_decoder(config)->loss({2, 8}, true).outputs().size(), 1U);
  }
  EXPECT_EQ(make_decoder(shared_experts_decoder())->loss({2, 8}, false).outputs().size(), 1U) << "of training alone";
}

// Whatever comes later, or in another row, or as padding, takes nobody's place.
TEST(Experts, a_tokens_fate_depends_on_those_before_it_in_its_group) {
  DecoderConfig config = shared_experts_decoder();
  config.experts.group = 0;
  config.experts.capacity_factor = 0.75;
  const std::int64_t seq = 8, v = 11;
  Data data = one_document(2, seq, v);
  const HostTensor before = logits_of(config, data, 2, seq);
  ASSERT_GT(dropped(config, data, {2, seq}), 0);
  const auto same = [&](const Data& changed, std::int64_t first, std::int64_t last) {
    const HostTensor after = logits_of(config, changed, 2, seq);
    for (std::int64_t i = first * v; i < last * v; ++i) {
      if (before.at(i) != after.at(i)) return false;
    }
    return true;
  };
  for (std::int64_t at = 1; at < seq; ++at) {
    Data changed = data;
    for (std::int64_t i = at; i < 2 * seq; ++i)
      changed["tokens"].set(i, static_cast<double>(static_cast<int>(data["tokens"].at(i) + 1) % v));
    EXPECT_TRUE(same(changed, 0, at)) << at;
    EXPECT_FALSE(same(changed, at, seq)) << at;
  }
  // Padding before the others: they find the places that it would have had.
  Data padded = data;
  for (std::int64_t i = 0; i < 4; ++i) padded["segments"].set(i, 0);
  EXPECT_LT(dropped(config, padded, {2, seq}), dropped(config, data, {2, seq}));
}

// The buffers of a group do not reach beyond it: two halves of a row are two groups.
TEST(Experts, groups_of_a_row_are_routed_apart) {
  DecoderConfig config = shared_experts_decoder();
  config.experts.capacity_factor = 0.75;
  const Data data = one_document(2, 8, 11);
  const double apart = dropped(config, data, {2, 8});
  config.experts.group = 0;
  EXPECT_NE(apart, dropped(config, data, {2, 8}));
}

// A router that knows nothing sends every token to the first experts: balance is experts / k, of which tokens are.
TEST(Experts, balance_is_one_when_even_and_counts_real_tokens_alone) {
  DecoderConfig config = mixture_decoder();
  config.experts.balance = 1;
  const auto losses = [&](const Data& data, bool zero_router) {
    const auto model = make_decoder(config);
    std::vector<double> all;
    for (const bool training : {true, false}) {
      const Graph graph = in_f64(model->loss({2, 8}, training));
      std::vector<HostTensor> inputs = arguments(graph, data);
      for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
        const GraphInput& input = graph.inputs()[i];
        if (zero_router && input.name.ends_with("moe.router"))
          inputs[i] = HostTensor(DType::f64, graph.type(input.value).shape);
      }
      all.push_back(evaluate(graph, inputs)[0].at(0));
    }
    return all[0] - all[1];
  };
  Data data = one_document(2, 8, 11);
  // p is 1/4 everywhere and ties go to experts 0 and 1: 4 · (1/2 · 1/4 + 1/2 · 1/4) = 1 a block, for each of 16 labels.
  EXPECT_NEAR(losses(data, true), 3 * 16, 1e-9);
  data["labels"].set(3, -1);
  EXPECT_NEAR(losses(data, true), 3 * 15, 1e-9);
  for (std::int64_t i = 8; i < 16; ++i) {
    data["segments"].set(i, 0);
    data["labels"].set(i, -1);
  }
  EXPECT_NEAR(losses(data, true), 3 * 7, 1e-9);
  const double half = losses(data, false);
  for (std::int64_t i = 8; i < 16; ++i) data["tokens"].set(i, 1);
  EXPECT_NEAR(losses(data, false), half, 1e-12) << "what is padded does not count";
  EXPECT_GT(half, 3 * 7 * 0.5);
}

// In bf16 the loss of a batch has more digits than that type: neither it nor the balance of all layers is rounded to
// it.
TEST(Experts, the_loss_is_no_narrower_than_without_them) {
  const Graph loss = make_decoder(shared_experts_decoder())->loss({2, 8}, true);
  const Graph narrow = apply_precision(loss, {DType::f32, DType::bf16, DType::f32, DType::f32});
  std::vector<ValueId> ways{narrow.output_named("loss")};
  int numbers = 0;
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const NodeId from = narrow.producer(ways[w]);
    if (narrow.type(ways[w]).ndim() > 0 || !is_float(narrow.type(ways[w]).dtype)) continue;
    EXPECT_EQ(narrow.type(ways[w]).dtype, DType::f32) << "value " << ways[w].index;
    ++numbers;
    if (!from.valid() || is(narrow.node(from), "repeat")) continue;
    for (const ValueId id : narrow.node(from).operands) ways.push_back(id);
  }
  EXPECT_GE(numbers, 6);  // the loss, that of the words, the balance, its coefficient, their product, the labels
}

// Model FLOPs are those of the parameters that a token uses; buffers and their padding are executed ones.
TEST(Experts, padding_is_executed_and_no_model_flops) {
  DecoderConfig config = mixture_decoder();
  const BatchShape shape{2, 8};
  const Work dropless = work_of(make_decoder(config)->loss(shape, true));
  config.experts.dropless = false;
  config.experts.capacity_factor = 1;
  const Work even = work_of(make_decoder(config)->loss(shape, true));
  EXPECT_EQ(even.model_flops, dropless.model_flops);
  // 4 experts of 8 places a row where an even share is 4.
  const std::int64_t products = 3 * 3 * 2 * (2 * 4 * 4) * 12 * 8;
  EXPECT_GT(dropless.flops - even.flops, products);
  EXPECT_LT(dropless.flops - even.flops, products * 5 / 4);
}

// Values of 3 in the place of 6: zeros are multiplied, and no model's work.
TEST(Experts, latent_attention_counts_what_its_values_have) {
  DecoderConfig config = latent_decoder();
  config.experts = {};
  config.mlp = 20;
  constexpr std::int64_t kSeq = 6, kPairs = kSeq * (kSeq + 1) / 2, kHeads = 4, kLayers = 3;
  const std::int64_t attention = 12 * 7 + 7 * kHeads * 6 + 12 * 5 + 12 * 2 + 5 * kHeads * (4 + 3) + kHeads * 3 * 12;
  const std::int64_t used = kLayers * (attention + 3 * 12 * 20) + 11 * 12;
  const Work work = work_of(make_decoder(config)->loss({1, kSeq}, true));
  EXPECT_EQ(work.model_flops, 2 * used * kSeq + kLayers * kHeads * kPairs * 2 * (6 + 3));
  std::int64_t backward = 0;
  const Differentiated parts = differentiate(make_decoder(config)->loss({1, kSeq}, true), "loss", {});
  for (const Graph* graph : {&parts.forward, &parts.backward}) backward += work_of(*graph).model_flops;
  EXPECT_EQ(backward, 3 * work.model_flops);
}

TEST(Experts, what_generates_nothing_yet_says_so) {
  DecoderConfig dense_first = latent_decoder();
  dense_first.latent = {};
  for (const auto& [config, key] :
       {std::pair(latent_decoder(), "model.mla: "), std::pair(dense_first, "model.moe.dense_layers: "),
        std::pair(interleaved_decoder(), "model.moe.every: ")}) {
    try {
      make_decoder(config)->decode(1, 8);
      ADD_FAILURE();
    } catch (const Failure& failure) { EXPECT_TRUE(failure.error().message.starts_with(key)); }
  }
}

// Of two layers one has experts; both are in the body of one repeat.
TEST(Experts, every_second_layer) {
  const auto model = make_decoder(interleaved_decoder());
  std::map<std::string, Shape> shapes;
  for (const Parameter& p : model->parameters()) shapes[p.name] = p.type.shape;
  EXPECT_EQ(shapes.at("blocks.{layer*2}.mlp.up"), (Shape{2, 12, 10}));
  EXPECT_EQ(shapes.at("blocks.{layer*2+1}.moe.up"), (Shape{2, 6, 12, 8}));
  EXPECT_FALSE(shapes.contains("blocks.{layer*2+1}.mlp.up") || shapes.contains("blocks.{layer*2}.moe.up"));
  int repeats = 0;
  const Graph loss = model->loss({1, 8}, true);
  for (const GraphNode& node : loss.nodes()) repeats += is(node, "repeat") ? 1 : 0;
  EXPECT_EQ(repeats, 1);
}

std::string message_of(const DecoderConfig& config) {
  try {
    make_decoder(config)->loss({1, 6}, true);
  } catch (const Failure& failure) { return to_string(failure.error()); }
  return "accepted";
}

TEST(Experts, refusals_name_the_key_and_what_would_do) {
  DecoderConfig config = mixture_decoder();
  config.experts.top_k = 5;
  EXPECT_EQ(message_of(config), "error: model.moe.top_k: 5 of model.moe.experts: 4\n  hint: top_k may be 1 to 4");
  config = mixture_decoder();
  config.experts.group = 5;
  EXPECT_NE(message_of(config).find("model.moe.group: 5 does not divide model.context: 24"), std::string::npos);
  config.experts.group = 4;
  EXPECT_NE(message_of(config).find("4 tokens do not divide rows of 6"), std::string::npos);
  config = mixture_decoder();
  config.bias = true;
  EXPECT_NE(message_of(config).find("experts have no biases"), std::string::npos);
  config = mixture_decoder();
  config.experts.capacity_factor = 0;
  EXPECT_NE(message_of(config).find("must be above 0"), std::string::npos);
  config = interleaved_decoder();
  config.layers = 5;
  EXPECT_NE(message_of(config).find("model.moe.every: 5 layers are no multiple of 2"), std::string::npos);
  config = interleaved_decoder();
  config.experts.dense_mlp = 0;
  EXPECT_NE(message_of(config).find("moe.dense_mlp"), std::string::npos);
}

}  // namespace
}  // namespace systole

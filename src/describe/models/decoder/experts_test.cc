// Guarantees of experts: which tokens are dropped, what is counted, and independence of layout and later tokens.

#include "describe/models/decoder/experts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/autodiff/autodiff.h"
#include "describe/ir/rewrite.h"
#include "describe/ir/work.h"
#include "describe/models/decoder/testing/tiny_decoder.h"
#include "describe/partition/probe.h"

namespace systole {
namespace {

using Data = std::map<std::string, HostTensor>;

TEST(Experts, capacity_is_the_even_share_times_its_factor_and_dropless_the_worst_case) {
  ExpertsSpec config;
  config.experts = 8;
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

HostTensor logits_of(const DecoderSpec& config, const Data& data, std::int64_t rows, std::int64_t sequence_length) {
  return run(in_f64(make_decoder(config)->forward({rows, sequence_length})), data)[0];
}

// Dropped choices of all layers.
double dropped(const DecoderSpec& config, const Data& data, const BatchShape& shape) {
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
  DecoderSpec config = mixture_decoder();
  config.context = 8;
  EXPECT_EQ(dropped(config, data, {2, 8}), 0);
  const HostTensor all = logits_of(config, data, 2, 8);
  config.moe.dropless = false;
  config.moe.capacity_factor = 4;  // capacity for every token
  EXPECT_EQ(dropped(config, data, {2, 8}), 0);
  EXPECT_EQ(logits_of(config, data, 2, 8), all);
  config.moe.capacity_factor = 0.5;  // capacity 2 per expert: at least half of the 16 choices per row are dropped
  EXPECT_GE(dropped(config, data, {2, 8}), 3 * 2 * 8);
  EXPECT_NE(logits_of(config, data, 2, 8), all);
}

// Counts are summed over both halves of a batch and all layers. They stay f32, because bf16 counts only to 256.
TEST(Experts, training_counts_choices_and_those_dropped) {
  Data data = one_document(2, 8, 11);
  for (std::int64_t i = 13; i < 16; ++i) data["segments"].set(i, 0);
  for (DecoderSpec config : {shared_experts_decoder(), latent_decoder(), interleaved_decoder()}) {
    config.moe.dropless = false;
    config.moe.capacity_factor = 0.5;
    const auto model = make_decoder(config);
    const Graph loss = model->loss({2, 8}, true);
    ASSERT_EQ(loss.outputs().size(), 3U);
    EXPECT_EQ(loss.outputs()[1].name, kExpertChoices);
    EXPECT_EQ(loss.outputs()[2].name, kDroppedChoices);
    const auto counted = run(in_f64(loss), data);
    std::int64_t blocks = 0;
    for (const LayerGroup& group : layer_groups(config))
      blocks += group.period.back().moe.experts > 0 ? group.count : 0;
    EXPECT_EQ(counted[1].at(0), static_cast<double>(blocks * 13 * config.moe.top_k));
    EXPECT_EQ(counted[2].at(0), dropped(config, data, {2, 8}));
    EXPECT_GT(counted[2].at(0), 0);
    const Graph narrow = apply_precision(loss, {DType::bf16, DType::bf16, DType::f32, DType::f32});
    EXPECT_EQ(narrow.type(narrow.outputs()[2].value).dtype, DType::f32);
    EXPECT_EQ(run(narrow, data)[1].at(0), counted[1].at(0));
    config.moe.dropless = true;
    EXPECT_EQ(make_decoder(config)->loss({2, 8}, true).outputs().size(), 1U);
  }
  EXPECT_EQ(make_decoder(shared_experts_decoder())->loss({2, 8}, false).outputs().size(), 1U) << "of training alone";
}

// A row that is shorter than the context has the capacity that it has padded to it.
TEST(Experts, a_short_row_drops_no_more_than_padded) {
  DecoderSpec config = mixture_decoder();
  config.moe.dropless = false;
  config.moe.capacity_factor = 0.5;
  Data data = one_document(2, 24, 11);  // as long as the context
  for (std::int64_t i = 0; i < 48; ++i)
    if (i % 24 >= 8) data["segments"].set(i, 0);
  Data row = one_document(2, 8, 11);
  for (const char* name : {"tokens", "labels"})
    for (std::int64_t i = 0; i < 16; ++i) row[name].set(i, data[name].at(i / 8 * 24 + i % 8));
  EXPECT_GT(dropped(config, row, {2, 8}), 0);
  EXPECT_EQ(dropped(config, row, {2, 8}), dropped(config, data, {2, 24}));
}

// Later tokens, other rows and padding take no capacity from a token.
TEST(Experts, a_tokens_fate_depends_on_those_before_it_in_its_group) {
  DecoderSpec config = shared_experts_decoder();
  config.moe.group = 0;
  config.moe.capacity_factor = 0.75;
  const std::int64_t sequence_length = config.context = 8, v = 11;
  Data data = one_document(2, sequence_length, v);
  const HostTensor before = logits_of(config, data, 2, sequence_length);
  ASSERT_GT(dropped(config, data, {2, sequence_length}), 0);
  const auto same = [&](const Data& changed, std::int64_t first, std::int64_t last) {
    const HostTensor after = logits_of(config, changed, 2, sequence_length);
    for (std::int64_t i = first * v; i < last * v; ++i) {
      if (before.at(i) != after.at(i)) return false;
    }
    return true;
  };
  for (std::int64_t at = 1; at < sequence_length; ++at) {
    Data changed = data;
    for (std::int64_t i = at; i < 2 * sequence_length; ++i)
      changed["tokens"].set(i, static_cast<double>(static_cast<int>(data["tokens"].at(i) + 1) % v));
    EXPECT_TRUE(same(changed, 0, at)) << at;
    EXPECT_FALSE(same(changed, at, sequence_length)) << at;
  }
  // Padding before the tokens does not take their places.
  Data padded = data;
  for (std::int64_t i = 0; i < 4; ++i) padded["segments"].set(i, 0);
  EXPECT_LT(dropped(config, padded, {2, sequence_length}), dropped(config, data, {2, sequence_length}));
}

// Routing does not cross groups: two halves of a row are two groups.
TEST(Experts, groups_of_a_row_are_routed_apart) {
  DecoderSpec config = shared_experts_decoder();
  config.moe.capacity_factor = 0.75;
  const Data data = one_document(2, 8, 11);
  const double apart = dropped(config, data, {2, 8});
  config.moe.group = 0;
  EXPECT_NE(apart, dropped(config, data, {2, 8}));
}

// With equal logits every token goes to the first k experts; the balance is 1, and only real tokens count.
TEST(Experts, balance_is_one_when_even_and_counts_real_tokens_alone) {
  DecoderSpec config = mixture_decoder();
  config.moe.balance = 1;
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

// Under bf16 the loss keeps its precision: neither the loss nor the balance of all layers is rounded to bf16.
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
  EXPECT_GE(numbers, 6);  // the loss, the token loss, the balance, its coefficient, their product, the labels
}

// Model FLOPs count the parameters that a token uses; buffers and their padding count only as executed FLOPs.
TEST(Experts, padding_is_executed_and_no_model_flops) {
  DecoderSpec config = mixture_decoder();
  config.context = 8;
  const BatchShape shape{2, 8};
  const Work dropless = work_of(make_decoder(config)->loss(shape, true));
  config.moe.dropless = false;
  config.moe.capacity_factor = 1;
  const Work even = work_of(make_decoder(config)->loss(shape, true));
  EXPECT_EQ(even.model_flops, dropless.model_flops);
  // 4 experts with capacity 8 per row, where an even share is 4.
  const std::int64_t products = 3 * 3 * 2 * (2 * 4 * 4) * 12 * 8;
  EXPECT_GT(dropless.flops - even.flops, products);
  EXPECT_LT(dropless.flops - even.flops, products * 5 / 4);
}

// Values of width 3 padded to 6: the zeros are multiplied but do not count as model FLOPs.
TEST(Experts, latent_attention_counts_what_its_values_have) {
  DecoderSpec config = latent_decoder();
  config.moe = {};
  config.mlp = 20;
  constexpr std::int64_t kSequenceLength = 6, kPairs = kSequenceLength * (kSequenceLength + 1) / 2, kHeads = 4,
                         kLayers = 3;
  const std::int64_t attention = 12 * 7 + 7 * kHeads * 6 + 12 * 5 + 12 * 2 + 5 * kHeads * (4 + 3) + kHeads * 3 * 12;
  const std::int64_t used = kLayers * (attention + 3 * 12 * 20) + 11 * 12;
  const Work work = work_of(make_decoder(config)->loss({1, kSequenceLength}, true));
  EXPECT_EQ(work.model_flops, 2 * used * kSequenceLength + kLayers * kHeads * kPairs * 2 * (6 + 3));
  std::int64_t backward = 0;
  const Differentiated parts = differentiate(make_decoder(config)->loss({1, kSequenceLength}, true), "loss", {});
  for (const Graph* graph : {&parts.forward, &parts.backward}) backward += work_of(*graph).model_flops;
  EXPECT_EQ(backward, 3 * work.model_flops);
}

TEST(Experts, what_generates_nothing_yet_says_so) {
  DecoderSpec dense_first = latent_decoder();
  dense_first.mla = {};
  for (const auto& [config, key] :
       {std::pair(latent_decoder(), "model.mla: "), std::pair(dense_first, "model.moe.dense_layers: "),
        std::pair(interleaved_decoder(), "model.moe.every: ")}) {
    try {
      make_decoder(config)->step(1, 1, {1, 8, 1});
      ADD_FAILURE();
    } catch (const Failure& failure) { EXPECT_TRUE(failure.error().message.starts_with(key)); }
  }
}

// Every second layer has experts; both kinds of layers are in the body of one repeat.
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

std::string message_of(const DecoderSpec& config) {
  try {
    make_decoder(config)->loss({1, 6}, true);
  } catch (const Failure& failure) { return to_string(failure.error()); }
  return "accepted";
}

TEST(Experts, refusals_name_the_key_and_what_would_do) {
  DecoderSpec config = mixture_decoder();
  config.moe.top_k = 5;
  EXPECT_EQ(message_of(config), "error: model.moe.top_k: a token cannot go to 5 of 4 experts\n  hint: at most all");
  config = mixture_decoder();
  config.moe.group = 5;
  EXPECT_NE(message_of(config).find("model.moe.group: groups of 5 tokens do not divide rows of 24"), std::string::npos);
  config.moe.group = 4;
  EXPECT_NE(message_of(config).find("4 tokens do not divide rows of 6"), std::string::npos);
  config = mixture_decoder();
  config.bias = true;
  EXPECT_NE(message_of(config).find("experts have no biases"), std::string::npos);
  config = mixture_decoder();
  config.moe.capacity_factor = 0;
  EXPECT_NE(message_of(config).find("must be above 0"), std::string::npos);
  config = interleaved_decoder();
  config.layers = 5;
  EXPECT_NE(message_of(config).find("model.moe.every: 5 layers are no multiple of 2"), std::string::npos);
  config = interleaved_decoder();
  config.moe.dense_mlp = 0;
  EXPECT_NE(message_of(config).find("moe.dense_mlp"), std::string::npos);
}

}  // namespace
}  // namespace systole

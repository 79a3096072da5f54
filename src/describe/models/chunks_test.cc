// Whole models split into pipeline chunks, forward in order and backward in reverse: the loss and every gradient equal
// those of the whole model, in f64 to 1e-12 of the largest.

#include "describe/partition/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "describe/autodiff/autodiff.h"
#include "describe/ir/layer_names.h"
#include "describe/ir/verify.h"
#include "describe/models/decoder/testing/tiny_decoder.h"
#include "describe/models/t5/testing/tiny_t5.h"
#include "describe/ops/testing/op_case.h"

namespace systole {
namespace {

using Tensors = std::map<std::string, HostTensor>;

// Rows [first, first + count) of the outermost dim.
HostTensor rows_of(const HostTensor& whole, std::int64_t first, std::int64_t count) {
  Shape shape = whole.shape();
  const std::size_t row = whole.bytes().size() / static_cast<std::size_t>(shape[0]);
  shape[0] = count;
  HostTensor part(whole.dtype(), shape);
  std::copy_n(whole.bytes().begin() + static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(first)),
              row * static_cast<std::size_t>(count), part.bytes().begin());
  return part;
}

// The given layers of a stack of the whole model, which starts at their first layer or before it.
HostTensor layers_of(const Tensors& whole, const LayerName& layers, std::int64_t count) {
  std::int64_t first = layers.first;
  while (!whole.contains(layers.from(first))) first -= layers.step;
  return rows_of(whole.at(layers.from(first)), (layers.first - first) / layers.step, count);
}

Tensors named(const Graph& graph, const std::vector<HostTensor>& outputs) {
  Tensors result;
  for (std::size_t o = 0; o < outputs.size(); ++o) result.emplace(graph.outputs()[o].name, outputs[o]);
  return result;
}

Tensors evaluated(const Graph& graph, const Tensors& values) {
  std::vector<HostTensor> inputs;
  for (const GraphInput& input : graph.inputs()) inputs.push_back(values.at(input.name));
  return named(graph, evaluate(graph, inputs));
}

class ChunkedModel {
 public:
  ChunkedModel(const Graph& loss, const Tensors& data, const std::vector<std::int64_t>& layers,
               const RecomputePolicy& policy)
      : loss_(in_f64(loss)), policy_(policy), data_(data), values_(data), chunks_(cut_into_chunks(loss_, layers)) {
    const Tensors whole = named_arguments();
    for (const Chunk& chunk : chunks_) {
      verify(chunk.graph);
      for (const GraphInput& input : chunk.graph.inputs()) {
        if (!input.parameter) continue;
        const auto stack = layer_name(input.name);
        values_.emplace(input.name,
                        stack ? layers_of(whole, *stack, input.parameter->type.size(0)) : whole.at(input.name));
      }
    }
  }

  // The largest difference of the loss and any gradient, relative to the largest value there.
  double check() {
    const Differentiated whole = differentiate(loss_, "loss", policy_);
    Tensors all = named_arguments();
    const Tensors forward = evaluated(whole.forward, all);
    all.insert(forward.begin(), forward.end());
    const Tensors expected = evaluated(whole.backward, all);
    const Tensors got = gradients_of_chunks();
    double worst = relative_difference(got.at("loss"), forward.at("loss"));
    for (const auto& [name, tensor] : got) {
      if (name == "loss") continue;
      const auto layers = layer_name(name);
      const HostTensor want = layers ? layers_of(expected, *layers, tensor.shape()[0]) : expected.at(name);
      worst = std::max(worst, relative_difference(tensor, want));
    }
    return worst;
  }

 private:
  Tensors named_arguments() const {
    Tensors all = data_;
    const std::vector<HostTensor> first = arguments(loss_, data_);
    for (std::size_t i = 0; i < first.size(); ++i) all.emplace(loss_.inputs()[i].name, first[i]);
    return all;
  }

  // "loss", and "gradient.<parameter>" of each; for tied parameters the sum.
  Tensors gradients_of_chunks() {
    std::vector<Differentiated> parts;
    std::vector<Tensors> held;  // residuals for a chunk's backward
    std::vector<std::string> from;
    Tensors between, result;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const bool last = c + 1 == chunks_.size();
      const std::vector<std::string> next = last ? std::vector<std::string>() : trained_outputs(chunks_[c].graph, from);
      parts.push_back(differentiate_chunk(chunks_[c].graph, last ? "loss" : "", from, next, policy_));
      verify(parts[c].forward);
      verify(parts[c].backward);
      from = next;
      Tensors in = values_;
      in.insert(between.begin(), between.end());
      const Tensors outputs = evaluated(parts[c].forward, in);
      in.insert(outputs.begin(), outputs.end());
      held.push_back(std::move(in));
      between.clear();
      for (const auto& [name, tensor] : outputs) {
        if (!name.starts_with("residual.")) between.emplace(name, tensor);
      }
    }
    result.emplace("loss", between.at("loss"));
    Tensors cotangents;
    for (std::size_t c = chunks_.size(); c-- > 0;) {
      Tensors in = held[c];
      for (const auto& [name, tensor] : cotangents) in.emplace("cotangent." + name, tensor);
      cotangents.clear();
      for (auto& [name, tensor] : evaluated(parts[c].backward, in)) {
        const std::string of = name.substr(std::string("gradient.").size());
        if (of.starts_with("between.")) {
          cotangents.emplace(of, std::move(tensor));
        } else if (const auto there = result.find(name); there != result.end()) {
          for (std::int64_t i = 0; i < tensor.size(); ++i) there->second.set(i, there->second.at(i) + tensor.at(i));
        } else {
          result.emplace(name, std::move(tensor));
        }
      }
    }
    return result;
  }

  const Graph loss_;
  const RecomputePolicy policy_;
  const Tensors& data_;
  Tensors values_;  // inputs, and the parameters of every chunk
  const std::vector<Chunk> chunks_;
};

Tensors pairs_of(std::int64_t rows) {
  Tensors data = one_document(rows, 8, 11);
  data["target_tokens"] = random_ids(Type(DType::i32, {rows, 7}), 3, 11);
  data["labels"] = random_ids(Type(DType::i32, {rows, 7}), 4, 11);
  data["target_segments"] = HostTensor(DType::i32, {rows, 7});
  for (std::int64_t i = 0; i < rows * 7; ++i) data["target_segments"].set(i, 1);
  return data;
}

void check(const Graph& loss, const Tensors& data, const std::vector<std::vector<std::int64_t>>& cuts) {
  for (const auto& layers : cuts) {
    for (const auto policy : {RecomputePolicy::Kind::none, RecomputePolicy::Kind::block}) {
      ChunkedModel model(with_only(loss, "loss"), data, layers, {policy, {}});
      EXPECT_LE(model.check(), 1e-12) << loss.name() << " in chunks of " << fmt::format("{}", fmt::join(layers, ", "));
    }
  }
}

TEST(Chunks, decoders_are_what_they_were) {
  for (DecoderSpec config :
       {tiny_decoder(), llama_decoder(), parallel_decoder(), windowed_decoder(), shared_experts_decoder()}) {
    config.layers = 4;
    config.dropout = 0.25;
    check(make_decoder(config)->loss({2, 8}, true), one_document(2, 8, 11), {{4}, {2, 2}, {1, 2, 1}, {1, 1, 1, 1}});
  }
}

// The group of layers without experts ends within a chunk, or at its end.
TEST(Chunks, layers_before_those_with_experts_are_what_they_were) {
  DecoderSpec config = latent_decoder();
  config.layers = 4;
  config.dropout = 0.25;
  config.moe.dense_layers = 2;
  check(make_decoder(config)->loss({2, 8}, true), one_document(2, 8, 11), {{4}, {2, 2}, {1, 2, 1}, {3, 1}});
}

// The pipeline is split between groups of two layers, each with its own dropout bits.
TEST(Chunks, layers_of_which_every_second_has_experts_are_what_they_were) {
  DecoderSpec config = interleaved_decoder();
  config.layers = 7;
  config.dropout = 0.25;
  config.moe.dense_layers = 1;
  check(make_decoder(config)->loss({2, 8}, true), one_document(2, 8, 11), {{4}, {2, 2}, {1, 3}, {1, 1, 2}});
}

TEST(Chunks, a_frozen_model_with_adapters_is_what_it_was) {
  DecoderSpec config = llama_decoder();
  config.layers = 3;
  config.adapters.rank = 2;
  check(make_decoder(config)->loss({2, 8}, true), one_document(2, 8, 11), {{2, 1}, {1, 1, 1}});
}

// The encoder ends within a chunk or at its end, and its output passes through chunks.
TEST(Chunks, encoders_with_decoders_are_what_they_were) {
  for (T5Spec config : {tiny_t5(), tiny_gated_t5()}) {
    config.layers = 3;
    check(make_t5(config)->loss({2, 8, 7}, true), pairs_of(2), {{3, 3}, {2, 2, 2}, {4, 2}, {1, 1, 1, 1, 1, 1}});
  }
}

TEST(Chunks, what_is_where) {
  DecoderSpec config = tiny_decoder();
  config.layers = 4;
  const std::vector<std::int64_t> layers{1, 3};
  const Graph loss = make_decoder(config)->loss({2, 8}, false);
  const std::vector<Chunk> chunks = cut_into_chunks(loss, layers);
  ASSERT_EQ(chunks.size(), 2u);
  const auto has = [](const Chunk& chunk, const char* name) { return chunk.graph.find_input(name).has_value(); };
  EXPECT_TRUE(has(chunks[0], "embed.tokens") && has(chunks[1], "embed.tokens"));  // tied
  EXPECT_TRUE(has(chunks[0], "embed.positions") && !has(chunks[1], "embed.positions"));
  EXPECT_TRUE(!has(chunks[0], "norm.scale") && has(chunks[1], "norm.scale"));
  EXPECT_TRUE(!has(chunks[0], "labels") && has(chunks[1], "labels"));
  EXPECT_TRUE(has(chunks[0], "blocks.{layer}.attn.q") && has(chunks[1], "blocks.{layer+1}.attn.q"));
  EXPECT_EQ(chunks[0].from_before, 0);
  EXPECT_EQ(chunks[1].from_before, 1);
  ASSERT_EQ(chunks[0].graph.outputs().size(), 1u);
  EXPECT_EQ(chunks[0].graph.outputs()[0].name, "between.0.0");
  EXPECT_EQ(chunks[0].graph.type(chunks[0].graph.outputs()[0].value).shape, (Shape{2, 8, 12}));
  EXPECT_EQ(chunks[1].graph.inputs()[0].name, "embed.tokens");  // in the model's order
}

TEST(Chunks, bad_cuts_are_refused) {
  const Graph loss = make_decoder(tiny_decoder())->loss({2, 8}, false);  // 3 layers
  const auto cut = [&](std::vector<std::int64_t> layers) {
    try {
      cut_into_chunks(loss, layers);
    } catch (const Failure& failure) { return failure.error().message; }
    return std::string();
  };
  EXPECT_NE(cut({2, 2}).find("4 layers in the chunks of a pipeline; 'loss' has 3"), std::string::npos) << cut({2, 2});
  EXPECT_NE(cut({3, 0}).find("needs a layer"), std::string::npos);
  EXPECT_EQ(cut({2, 1}), "");
}

TEST(Chunks, names_of_layers) {
  const LayerName name = layer_name("gradient/blocks.{layer+8}.attn.q").value();
  EXPECT_EQ(name.of(2), "gradient/blocks.10.attn.q");
  EXPECT_EQ(name.from(0), "gradient/blocks.{layer}.attn.q");
  EXPECT_EQ(name.from(3), "gradient/blocks.{layer+3}.attn.q");
  EXPECT_EQ(layer_name("blocks.{layer}.up")->of(0), "blocks.0.up");
  EXPECT_FALSE(layer_name("embed.tokens"));

  const LayerName second = layer_name("blocks.{layer*2+5}.up").value();  // of the layers 1, 3, 5, 7, … those from 5 on
  EXPECT_EQ(second.of(1), "blocks.7.up");
  EXPECT_EQ(second.from(7), "blocks.{layer*2+7}.up");
  EXPECT_EQ(second.whole(), "blocks.{layer*2+1}.up");
  EXPECT_EQ(second.before(), 2);
  EXPECT_EQ(name.whole(), "gradient/blocks.{layer}.attn.q");
  EXPECT_EQ(name.before(), 8);
}

}  // namespace
}  // namespace systole

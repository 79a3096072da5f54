#include "describe/models/t5/t5.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ir/text.h"
#include "describe/ir/work.h"
#include "describe/models/t5/testing/tiny_t5.h"
#include "describe/models/testing/gradient_check.h"

namespace systole {
namespace {

constexpr std::int64_t kVocabulary = 11;

struct Pair {
  std::int64_t input, target;  // lengths
};

// Pairs one after another in each row; the content of a pair depends only on its number.
Tensors rows_of(std::int64_t rows, std::int64_t sequence_length, std::int64_t target, const std::vector<Pair>& pairs,
                std::size_t first_pair = 0) {
  Tensors data{{"seed", scalar(5)}, {"step", scalar(6)}, {"row", scalar(0)}};
  for (const char* name : {"tokens", "segments"}) data[name] = HostTensor(DType::i32, {rows, sequence_length});
  for (const char* name : {"target_tokens", "labels", "target_segments"})
    data[name] = HostTensor(DType::i32, {rows, target});
  for (std::int64_t i = 0; i < rows * target; ++i) data["labels"].set(i, -1);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = row * sequence_length, to = row * target;
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      const Type input(DType::i32, {std::max<std::int64_t>(1, pairs[p].input)}),
          label(DType::i32, {std::max<std::int64_t>(1, pairs[p].target)});
      const std::uint64_t key = 100 * static_cast<std::uint64_t>(row) + 2 * (p + first_pair);
      const HostTensor tokens = random_ids(input, key, kVocabulary), labels = random_ids(label, key + 1, kVocabulary);
      for (std::int64_t i = 0; i < pairs[p].input; ++i, ++at) {
        data["tokens"].set(at, tokens.at(i));
        data["segments"].set(at, static_cast<double>(p + 1));
      }
      for (std::int64_t i = 0; i < pairs[p].target; ++i, ++to) {
        data["target_tokens"].set(to, i == 0 ? kT5Start : labels.at(i - 1));
        data["labels"].set(to, labels.at(i));
        data["target_segments"].set(to, static_cast<double>(p + 1));
      }
    }
  }
  return data;
}

std::int64_t published(std::int64_t width, std::int64_t head, std::int64_t heads, std::int64_t mlp, std::int64_t layers,
                       bool second) {
  T5Spec config;
  config.width = width;
  config.head = head;
  config.heads = heads;
  config.mlp = mlp;
  config.layers = layers;
  config.vocabulary = 32128;
  config.context = 512;
  config.gated = second;
  config.tied = !second;
  return num_parameters(*make_t5(config));
}

// As counted in T5ForConditionalGeneration of transformers with the published configurations: google-t5/t5-small …
// 11b and google/t5-v1_1-small … xxl.
TEST(T5, counts_are_the_published_ones) {
  EXPECT_EQ(published(512, 64, 8, 2048, 6, false), 60'506'624);
  EXPECT_EQ(published(768, 64, 12, 3072, 12, false), 222'903'552);
  EXPECT_EQ(published(1024, 64, 16, 4096, 24, false), 737'668'096);
  EXPECT_EQ(published(1024, 128, 32, 16384, 24, false), 2'851'598'336);
  EXPECT_EQ(published(1024, 128, 128, 65536, 24, false), 11'307'321'344);
  EXPECT_EQ(published(512, 64, 6, 1024, 8, true), 76'961'152);
  EXPECT_EQ(published(768, 64, 12, 2048, 12, true), 247'577'856);
  EXPECT_EQ(published(1024, 64, 16, 2816, 24, true), 783'150'080);
  EXPECT_EQ(published(2048, 64, 32, 5120, 24, true), 2'849'757'184);
  EXPECT_EQ(published(4096, 64, 64, 10240, 24, true), 11'135'332'352);
}

TEST(T5, graphs_verify_read_back_and_declare_the_same_parameters) {
  for (T5Spec config : {tiny_t5(), tiny_gated_t5()}) {
    config.dropout = 0.1;
    const auto model = make_t5(config);
    for (const Graph& graph : {model->loss({2, 8, 6}, true), model->loss({2, 8}, false), model->forward({2, 8}),
                               model->prefill(2, 8, 12), model->decode(2, 12)}) {
      verify(graph);
      EXPECT_EQ(to_text(*parse_graph(to_text(graph), "graph.txt")), to_text(graph));
      const std::vector<Parameter>& parameters = model->parameters();
      ASSERT_GT(graph.inputs().size(), parameters.size());
      for (std::size_t i = 0; i < parameters.size(); ++i) EXPECT_EQ(graph.inputs()[i].parameter, parameters[i]);
    }
  }
}

TEST(T5, unrolled_is_rolled) {
  for (T5Spec config : {tiny_t5(), tiny_gated_t5()}) {
    config.dropout = 0.3;
    const auto rolled = make_t5(config), unrolled = make_t5(config, true);
    const Tensors data = rows_of(2, 12, 9, {{5, 4}, {6, 3}});
    EXPECT_EQ(run(rolled->loss({2, 12, 9}, true), data), run(unrolled->loss({2, 12, 9}, true), data));
    EXPECT_EQ(run(rolled->forward({2, 12, 9}), data), run(unrolled->forward({2, 12, 9}), data));
  }
}

// Law packed-is-unpacked: pairs that share rows have the losses of each alone.
TEST(T5, packed_is_unpacked) {
  for (const T5Spec& config : {tiny_t5(), tiny_gated_t5()}) {
    const auto model = make_t5(config);
    const std::vector<Pair> pairs{{5, 4}, {1, 1}, {4, 3}};
    double alone = 0;
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      const BatchShape shape{1, pairs[p].input, pairs[p].target};
      alone +=
          run(in_f64(model->loss(shape, false)), rows_of(1, shape.sequence_length, shape.target, {pairs[p]}, p))[0].at(
              0);
    }
    EXPECT_GT(alone, 0);
    EXPECT_NEAR(run(in_f64(model->loss({1, 12, 10}, false)), rows_of(1, 12, 10, pairs))[0].at(0), alone, 1e-11);
  }
}

TEST(T5, gradients_are_finite_differences) {
  for (T5Spec config : {tiny_t5(), tiny_gated_t5()}) {
    config.dropout = 0.2;
    const Graph loss = in_f64(make_t5(config)->loss({2, 12, 9}, true));
    Tensors given = rows_of(2, 12, 9, {{5, 4}, {6, 3}});
    for (const GraphInput& input : loss.inputs()) {
      if (!input.parameter) continue;
      const bool ones = input.parameter->init.kind == Init::Kind::ones;
      given[input.name] = random_tensor(loss.type(input.value), input.name, ones ? 1 : 0, 0.3);
    }
    expect_gradients(loss, given);
  }
}

// Prefill of prompts of different lengths into slots, then token by token: the logits equal those of the whole rows.
// The slots are filled last to first, the caches begin with garbage, and slot 1 stays idle.
void expect_decode_is_forward(const T5Spec& config, bool unrolled = false) {
  constexpr std::int64_t kSlots = 3, kBucket = 6, kCache = 12, kTarget = 9;
  const std::int64_t lengths[kSlots] = {3, 0, 6};
  const auto model = make_t5(config, unrolled);
  const Graph prefill = in_f64(model->prefill(kSlots, kBucket, kCache)), decode = in_f64(model->decode(kSlots, kCache));
  std::map<std::string, HostTensor> caches;
  for (const GraphInput& input : prefill.inputs()) {
    if (!input.name.starts_with("cache.")) continue;
    const Type& type = prefill.type(input.value);
    caches[input.name] = is_float(type.dtype) ? random_tensor(type, input.name, 0, 9) : random_ids(type, 3, 5);
  }
  std::map<std::int64_t, Tensors> rows;
  std::map<std::int64_t, HostTensor> whole;
  const auto expect_row = [&](const HostTensor& logits, std::int64_t row, std::int64_t slot, std::int64_t position) {
    for (std::int64_t v = 0; v < kVocabulary; ++v)
      EXPECT_NEAR(logits.at(row * kVocabulary + v), whole.at(slot).at(position * kVocabulary + v), 1e-11);
  };
  const auto keep = [&](const Graph& graph, const std::vector<HostTensor>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (graph.outputs()[i].name.starts_with("cache.")) caches[graph.outputs()[i].name] = out[i];
    }
    return out.back();
  };
  for (const std::int64_t slot : {2, 0}) {
    rows[slot] = rows_of(1, lengths[slot], kTarget, {{lengths[slot], kTarget}}, static_cast<std::size_t>(slot));
    whole[slot] = run(in_f64(model->forward({1, lengths[slot], kTarget})), rows[slot])[0];
    HostTensor tokens(DType::i32, {1, kBucket});
    for (std::int64_t i = 0; i < kBucket; ++i) tokens.set(i, i < lengths[slot] ? rows[slot]["tokens"].at(i) : 10);
    Tensors data = caches;
    data["tokens"] = tokens;
    data["length"] = ints({1}, {static_cast<double>(lengths[slot])});
    data["slot"] = ints({1}, {static_cast<double>(slot)});
    expect_row(keep(prefill, run(prefill, data)), 0, slot, 0);
  }
  for (std::int64_t position = 1; position < kTarget; ++position) {
    Tensors data = caches;
    data["tokens"] = ints({kSlots, 1}, {0, 0, 0});
    data["position"] = ints({kSlots}, {static_cast<double>(position), -1, static_cast<double>(position)});
    for (const std::int64_t slot : {0, 2}) data["tokens"].set(slot, rows[slot]["target_tokens"].at(position));
    const HostTensor logits = keep(decode, run(decode, data));
    for (const std::int64_t slot : {0, 2}) expect_row(logits, slot, slot, position);
  }
}

TEST(T5, prefill_and_decode_are_the_whole_forward) {
  expect_decode_is_forward(tiny_t5());
  expect_decode_is_forward(tiny_gated_t5());
  expect_decode_is_forward(tiny_t5(), true);
}

TEST(T5, dropout_differs_by_step_and_ends_with_training) {
  T5Spec config = tiny_t5();
  config.dropout = 0.3;
  const auto model = make_t5(config);
  Tensors data = rows_of(2, 8, 6, {{8, 6}});
  const HostTensor first = run(model->loss({2, 8, 6}, true), data)[0];
  EXPECT_EQ(first, run(model->loss({2, 8, 6}, true), data)[0]);
  data["step"] = scalar(7);
  EXPECT_NE(first, run(model->loss({2, 8, 6}, true), data)[0]);
  EXPECT_EQ(run(make_t5(tiny_t5())->loss({2, 8, 6}, false), data), run(model->loss({2, 8, 6}, false), data));
}

// 2 FLOPs per matmul parameter and token of its side, all pairs in the encoder and in cross-attention, the causal half
// in the decoder.
TEST(T5, model_flops_follow_the_convention) {
  const T5Spec c = checked(tiny_gated_t5());
  const std::int64_t rows = 2, sequence_length = 12, target = 9;
  const std::int64_t attention = 4 * c.width * c.heads * c.head, mlp = 3 * c.width * c.mlp;
  const std::int64_t keys = attention / 2;  // in cross-attention, keys and values are per encoder token
  const std::int64_t matmul = rows * sequence_length * (c.layers * (attention + mlp) + c.decoder_layers * keys) +
                              rows * target * (c.decoder_layers * (attention + keys + mlp) + c.vocabulary * c.width);
  const std::int64_t pairs =
      rows * c.heads *
      (c.layers * sequence_length * sequence_length + c.decoder_layers * (target * (target + 1) / 2) +
       c.decoder_layers * target * sequence_length);
  EXPECT_EQ(work_of(make_t5(c)->loss({rows, sequence_length, target}, true)).model_flops,
            2 * matmul + 4 * pairs * c.head);
}

std::string message_of(const T5Spec& config) {
  try {
    make_t5(config);
  } catch (const Failure& failure) { return to_string(failure.error()); }
  return "accepted";
}

TEST(T5, refusals_name_the_key_and_what_would_do) {
  T5Spec config = tiny_t5();
  config.head = 0;
  config.heads = 5;
  EXPECT_NE(message_of(config).find("model.heads: 5 does not divide model.width: 12"), std::string::npos);
  config = tiny_t5();
  config.relative_buckets = 6;
  EXPECT_NE(message_of(config).find("model.relative.buckets: 6 is no multiple of 4"), std::string::npos);
  config = tiny_t5();
  config.relative_furthest = 4;
  EXPECT_NE(message_of(config).find("model.relative.furthest: 8 buckets tell distances up to 4 apart one by one"),
            std::string::npos);
  EXPECT_THROW(make_t5(tiny_t5())->loss({1, 13}, true), Failure);
  EXPECT_THROW(make_t5(tiny_t5())->loss({1, 12, 11}, true), Failure);
  EXPECT_THROW(make_t5(tiny_t5())->prefill(1, 8, 7), Failure);
  EXPECT_THROW(make_t5(tiny_t5())->decode(1, 13), Failure);
}

}  // namespace
}  // namespace systole

#include "describe/models/bert/bert.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ir/text.h"
#include "describe/ir/work.h"
#include "describe/models/testing/gradient_check.h"

namespace systole {
namespace {

BertSpec tiny() {
  BertSpec config;
  config.layers = 3;
  config.width = 12;
  config.heads = 3;
  config.mlp = 20;
  config.vocabulary = 11;
  config.context = 12;
  return config;
}

// Pieces one after another in a row, then padding; every second token is to be predicted.
Tensors rows_of(std::int64_t rows, std::int64_t sequence_length, const std::vector<std::int64_t>& pieces,
                std::uint64_t key = 1) {
  const Type ids(DType::i32, {rows, sequence_length});
  Tensors data{{"tokens", random_ids(ids, key, 11)},
               {"labels", HostTensor(DType::i32, ids.shape)},
               {"segments", HostTensor(DType::i32, ids.shape)},
               {"positions", HostTensor(DType::i32, ids.shape)},
               {"types", random_ids(ids, key + 1, 2)},
               {"seed", scalar(5)},
               {"step", scalar(6)},
               {"row", scalar(0)}};
  for (std::int64_t i = 0; i < rows * sequence_length; ++i) data["labels"].set(i, -1);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = row * sequence_length;
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      for (std::int64_t i = 0; i < pieces[piece]; ++i, ++at) {
        data["segments"].set(at, static_cast<double>(piece + 1));
        data["positions"].set(at, static_cast<double>(i));
        if (i % 2 == 0) data["labels"].set(at, static_cast<double>((7 * at + 3) % 11));
      }
    }
  }
  return data;
}

double loss_of(const Model& model, const BatchShape& shape, const Tensors& data) {
  return run(in_f64(model.loss(shape, false)), data)[0].at(0);
}

std::int64_t published(std::int64_t layers, std::int64_t width, std::int64_t heads) {
  BertSpec config;
  config.layers = layers;
  config.width = width;
  config.heads = heads;
  config.vocabulary = 30522;
  config.context = 512;
  return num_parameters(*make_bert(config));
}

// Counts of transformers' BertForMaskedLM for bert-base-uncased and bert-large-uncased. BertModel has no head of dense
// layer, norm and bias (w² + 4 w + 30,522, less w: w² + 3 w + 30,522 in all) but a pooler of w² + w: 109,482,240 and
// 335,141,888, the "110M" and "340M" of the paper.
TEST(Bert, counts_are_the_published_ones) {
  const auto without_head = [](std::int64_t width) { return width * width + 3 * width + 30522; };
  const auto pooler = [](std::int64_t width) { return width * width + width; };
  EXPECT_EQ(published(12, 768, 12), 109'514'298);
  EXPECT_EQ(published(12, 768, 12) - without_head(768) + pooler(768), 109'482'240);
  EXPECT_EQ(published(24, 1024, 16), 335'174'458);
  EXPECT_EQ(published(24, 1024, 16) - without_head(1024) + pooler(1024), 335'141'888);
}

TEST(Bert, graphs_verify_read_back_and_declare_the_same_parameters) {
  BertSpec config = tiny();
  config.dropout = 0.1;
  const auto model = make_bert(config);
  EXPECT_EQ(model->task(), Task::masked);
  for (const Graph& graph :
       {model->loss({2, 8}, true), model->loss({2, 8}, false), model->forward({2, 8}), model->hidden({2, 8})}) {
    verify(graph);
    EXPECT_EQ(to_text(*parse_graph(to_text(graph), "graph.txt")), to_text(graph));
    const std::vector<Parameter>& parameters = model->parameters();
    ASSERT_GT(graph.inputs().size(), parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(graph.inputs()[i].parameter, parameters[i]);
      for (const std::string& name : parameters[i].type.names()) EXPECT_NE(name, "") << parameters[i].name;
    }
  }
}

TEST(Bert, unrolled_is_rolled) {
  BertSpec config = tiny();
  config.dropout = 0.3;
  const auto rolled = make_bert(config), unrolled = make_bert(config, true);
  const Tensors data = rows_of(2, 10, {4, 5});
  EXPECT_EQ(run(rolled->loss({2, 10}, true), data), run(unrolled->loss({2, 10}, true), data));
  EXPECT_EQ(run(rolled->forward({2, 10}), data), run(unrolled->forward({2, 10}), data));
}

// Law packed-is-unpacked.
TEST(Bert, packed_is_unpacked) {
  const auto model = make_bert(tiny());
  const Tensors packed = rows_of(1, 12, {4, 1, 5});
  double alone = 0;
  std::int64_t start = 0;
  for (const std::int64_t length : {4, 1, 5}) {
    Tensors single = rows_of(1, length, {length});
    for (const char* name : {"tokens", "labels", "types"}) {
      for (std::int64_t i = 0; i < length; ++i) single[name].set(i, packed.at(name).at(start + i));
    }
    alone += loss_of(*model, {1, length}, single);
    start += length;
  }
  EXPECT_GT(alone, 0);
  EXPECT_NEAR(loss_of(*model, {1, 12}, packed), alone, 1e-11);
}

// Bidirectional attention: a token's logits depend on later tokens.
TEST(Bert, a_token_sees_both_sides) {
  const auto model = make_bert(tiny());
  Tensors data = rows_of(1, 6, {6});
  const HostTensor before = run(in_f64(model->forward({1, 6})), data)[0];
  data["tokens"].set(5, std::fmod(data["tokens"].at(5) + 1, 11));
  const HostTensor after = run(in_f64(model->forward({1, 6})), data)[0];
  for (std::int64_t v = 0; v < 11; ++v) EXPECT_GT(std::abs(before.at(v) - after.at(v)), 1e-9);
}

TEST(Bert, gradients_are_finite_differences) {
  BertSpec config = tiny();
  config.dropout = 0.2;
  expect_gradients(in_f64(make_bert(config)->loss({2, 10}, true)), [] {
    Tensors given = rows_of(2, 10, {4, 5});
    const Graph loss = in_f64(make_bert(tiny())->loss({2, 10}, true));
    for (const GraphInput& input : loss.inputs()) {
      if (!input.parameter) continue;
      const bool ones = input.parameter->init.kind == Init::Kind::ones;
      given[input.name] = random_tensor(loss.type(input.value), input.name, ones ? 1 : 0, 0.3);
    }
    return given;
  }());
}

// 2 FLOPs per matmul parameter and token, and all pairs of a row, since attention has no causal mask.
TEST(Bert, model_flops_follow_the_convention) {
  const BertSpec c = tiny();
  const std::int64_t rows = 2, sequence_length = 10, tokens = rows * sequence_length;
  const std::int64_t matmul =
      c.layers * (4 * c.width * c.width + 2 * c.width * c.mlp) + c.width * c.width + c.vocabulary * c.width;
  EXPECT_EQ(work_of(make_bert(c)->loss({rows, sequence_length}, true)).model_flops,
            2 * matmul * tokens + 4 * c.layers * rows * c.heads * sequence_length * sequence_length * c.head_width());
}

TEST(Bert, refusals_name_the_key_and_what_would_do) {
  BertSpec config = tiny();
  config.heads = 5;
  try {
    make_bert(config);
    ADD_FAILURE() << "accepted";
  } catch (const Failure& failure) {
    EXPECT_EQ(to_string(failure.error()),
              "error: model.heads: 5 does not divide model.width: 12\n  hint: heads may be 1, 2, 3, 4, 6, 12");
  }
  EXPECT_THROW(make_bert(tiny())->loss({1, 13}, true), Failure);
  EXPECT_THROW(make_bert(tiny())->prefill(1, 4, 8), Failure);
}

}  // namespace
}  // namespace systole

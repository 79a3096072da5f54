#include "describe/models/mlp/mlp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ir/verify.h"
#include "describe/models/testing/gradient_check.h"

namespace systole {
namespace {

TEST(Mlp, without_hidden_layers_it_is_the_linear_regression) {
  const auto model = make_mlp({.inputs = 784, .outputs = 10, .hidden = {}});
  EXPECT_EQ(num_parameters(*model), 784 * 10 + 10);
  EXPECT_EQ(to_string(model->parameters()[0].type), "f32[inputs=784, outputs=10]");
  EXPECT_EQ(model->task(), Task::regression);
  EXPECT_EQ(model->sequence_length(), 1);
}

TEST(Mlp, loss_is_the_sum_over_rows_of_the_mean_squared_error) {
  MlpSpec config;
  config.inputs = 2;
  config.outputs = 2;
  const Graph graph = make_mlp(config)->loss({2, 0}, true);
  verify(graph);
  const auto tensor = [](Shape shape, std::vector<double> values) {
    return HostTensor(DType::f32, std::move(shape), values);
  };
  // Row 0: (1, 2) W = (7, 10), + b = (8, 8); row 1: (0, 1) W = (3, 4), + b = (4, 2).
  const std::vector<HostTensor> inputs{tensor({2, 2}, {1, 2, 3, 4}), tensor({2}, {1, -2}), tensor({2, 2}, {1, 2, 0, 1}),
                                       tensor({2, 2}, {8, 9, 1, 2})};
  EXPECT_EQ(evaluate(graph, inputs)[0].at(0), (0 + 1) / 2.0 + (9 + 0) / 2.0);
}

// The loss and the gradients of five rows alone, and as they are padded to eight by empty rows.
TEST(Mlp, empty_rows_count_in_nothing) {
  MlpSpec config;
  config.inputs = 4;
  config.outputs = 3;
  config.hidden = {6};
  config.activation = Activation::tanh;
  const auto model = make_mlp(config);
  const auto computed = [&](std::int64_t rows, bool padded) {
    HostTensor x(DType::f64, {rows, 4}), y(DType::f64, {rows, 3}), filled(DType::f64, {rows});
    PhiloxStream random(3);
    for (std::int64_t row = 0; row < 5; ++row) {
      for (std::int64_t i = 0; i < 4; ++i) x.set(row * 4 + i, random.uniform());
      for (std::int64_t i = 0; i < 3; ++i) y.set(row * 3 + i, random.uniform());
      filled.set(row, 1);
    }
    const Graph graph = in_f64(model->loss({.rows = rows, .padded = padded}, true));
    Tensors given{{"x", x}, {"y", y}, {kFilled, filled}};
    for (const Parameter& p : model->parameters())
      given[p.name] = random_tensor(p.type.with(DType::f64), p.name, 0, 0.3);
    Tensors all = gradients_of(graph, given, {});
    all.merge(outputs_of(graph, given));
    return all;
  };
  const Tensors alone = computed(5, false), padded = computed(8, true);
  ASSERT_EQ(alone.size(), 5u) << "the loss, and the gradients of two weights and two biases";
  EXPECT_EQ(computed(5, true), alone);
  for (const auto& [name, tensor] : alone) {
    ASSERT_EQ(padded.at(name).shape(), tensor.shape()) << name;
    // A sum of 24 terms below 2 in another order: at most 24 roundings of a number below 48.
    for (std::int64_t e = 0; e < tensor.size(); ++e)
      EXPECT_NEAR(padded.at(name).at(e), tensor.at(e), 24 * 48 * 0x1p-53) << name << " at " << e;
  }
}

TEST(Mlp, takes_which_rows_are_filled_only_where_some_may_be_empty) {
  MlpSpec config;
  config.inputs = 2;
  config.outputs = 2;
  const auto takes = [&](bool padded) {
    const Graph graph = make_mlp(config)->loss({.rows = 2, .padded = padded}, true);
    return std::ranges::count(graph.inputs(), kFilled, &GraphInput::name);
  };
  EXPECT_EQ(takes(false), 0);
  EXPECT_EQ(takes(true), 1);
  config.loss = Loss::cross_entropy;
  EXPECT_EQ(takes(true), 0) << "labels tell";
}

TEST(Mlp, hidden_layers_of_unlike_widths) {
  MlpSpec config;
  config.inputs = 5;
  config.outputs = 3;
  config.hidden = {4, 7};
  config.dropout = 0.5;
  const auto model = make_mlp(config);
  EXPECT_EQ(num_parameters(*model), 5 * 4 + 4 + 4 * 7 + 7 + 7 * 3 + 3);
  std::map<std::string, HostTensor> data{{"x", random_tensor(Type(DType::f32, {3, 5}), "x", 0, 1)},
                                         {"y", random_tensor(Type(DType::f32, {3, 3}), "y", 0, 1)}};
  for (const char* name : {"seed", "step", "row"}) data[name] = HostTensor(DType::i64, {});
  const Graph training = model->loss({3, 0}, true), evaluation = model->loss({3, 0}, false);
  verify(training);
  EXPECT_NE(run(training, data)[0].at(0), run(evaluation, data)[0].at(0));
  const HostTensor prediction = run(model->forward({3, 0}), data)[0];
  double loss = 0;
  for (int i = 0; i < 9; ++i) loss += std::pow(prediction.at(i) - data.at("y").at(i), 2) / 3;
  EXPECT_NEAR(run(evaluation, data)[0].at(0), loss, 1e-5);
}

TEST(Mlp, classes_by_cross_entropy) {
  MlpSpec config;
  config.inputs = 3;
  config.outputs = 4;
  config.loss = Loss::cross_entropy;
  const auto model = make_mlp(config);
  EXPECT_EQ(model->task(), Task::classification);
  const Graph graph = model->loss({2, 0}, true);
  std::vector<HostTensor> inputs;
  for (const GraphInput& input : graph.inputs())
    inputs.emplace_back(graph.type(input.value).dtype, graph.type(input.value).shape);
  EXPECT_NEAR(evaluate(graph, inputs)[0].at(0), 2 * std::log(4.0), 1e-6);
}

TEST(Mlp, generates_nothing) {
  const auto model = make_mlp({.inputs = 784, .outputs = 10, .hidden = {}});
  EXPECT_THROW(model->prefill(1, 1, 1), Failure);
  EXPECT_THROW(model->decode(1, 1), Failure);
}

TEST(Mlp, refusals_name_the_key) {
  MlpSpec config;
  config.inputs = 784;
  config.outputs = 10;
  config.hidden = {3, 0};
  try {
    make_mlp(config);
    FAIL() << "accepted";
  } catch (const Failure& failure) { EXPECT_EQ(failure.error().message, "model.hidden is 0, must be at least 1"); }
}

}  // namespace
}  // namespace systole

#include "describe/models/mlp/mlp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "describe/graph/verify.h"
#include "describe/models/testing/tiny_inputs.h"

namespace systole {
namespace {

TEST(Mlp, without_hidden_layers_it_is_the_linear_regression) {
  const auto model = make_mlp({});
  EXPECT_EQ(num_parameters(*model), 784 * 10 + 10);
  EXPECT_EQ(to_string(model->parameters()[0].type), "f32[inputs=784, outputs=10]");
  EXPECT_EQ(model->task(), Task::regression);
}

TEST(Mlp, loss_is_the_sum_over_rows_of_the_mean_squared_error) {
  MlpConfig config;
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

TEST(Mlp, hidden_layers_of_unlike_widths) {
  MlpConfig config;
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
  MlpConfig config;
  config.inputs = 3;
  config.outputs = 4;
  config.loss = ModelSpec::Loss::cross_entropy;
  const auto model = make_mlp(config);
  EXPECT_EQ(model->task(), Task::classification);
  const Graph graph = model->loss({2, 0}, true);
  std::vector<HostTensor> inputs;
  for (const GraphInput& input : graph.inputs())
    inputs.emplace_back(graph.type(input.value).dtype, graph.type(input.value).shape);
  EXPECT_NEAR(evaluate(graph, inputs)[0].at(0), 2 * std::log(4.0), 1e-6);
}

TEST(Mlp, generates_nothing) {
  const auto model = make_mlp({});
  EXPECT_THROW(model->prefill(1, 1, 1), Failure);
  EXPECT_THROW(model->decode(1, 1), Failure);
}

TEST(Mlp, refusals_name_the_key) {
  MlpConfig config;
  config.hidden = {3, 0};
  try {
    make_mlp(config);
    FAIL() << "accepted";
  } catch (const Failure& failure) { EXPECT_EQ(failure.error().message, "model.hidden is 0, must be at least 1"); }
}

}  // namespace
}  // namespace systole

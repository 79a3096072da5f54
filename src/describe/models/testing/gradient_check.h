#pragma once
// For tests of whole tiny models: compares gradients, parameter by parameter, with central differences in f64 along
// random directions; checks that every recompute policy gives the same bits.

#include <gtest/gtest.h>

#include "describe/autodiff/autodiff.h"
#include "describe/ir/verify.h"
#include "describe/models/testing/tiny_inputs.h"

namespace systole {

using Tensors = std::map<std::string, HostTensor>;

inline Tensors outputs_of(const Graph& graph, const Tensors& given) {
  std::vector<HostTensor> inputs;
  for (const GraphInput& input : graph.inputs()) inputs.push_back(given.at(input.name));
  const std::vector<HostTensor> results = evaluate(graph, inputs);
  Tensors outputs;
  for (std::size_t i = 0; i < results.size(); ++i) outputs[graph.outputs()[i].name] = results[i];
  return outputs;
}

inline Tensors gradients_of(const Graph& loss, const Tensors& given, const RecomputePolicy& policy) {
  const Differentiated parts = differentiate(loss, "loss", policy);
  verify(parts.forward);
  verify(parts.backward);
  Tensors all = given;
  all.merge(outputs_of(parts.forward, given));
  return outputs_of(parts.backward, all);
}

inline void expect_gradients(const Graph& loss, const Tensors& given) {
  const Tensors gradients = gradients_of(loss, given, {});
  std::size_t trainable = 0;
  for (const GraphInput& input : loss.inputs()) {
    if (!input.parameter) continue;
    const auto found = gradients.find("gradient." + input.name);
    ASSERT_EQ(found != gradients.end(), input.parameter->trainable) << input.name;
    if (found == gradients.end()) continue;
    ++trainable;
    const HostTensor direction = random_tensor(loss.type(input.value), input.name + " direction", 0, 1);
    constexpr double kStep = 1e-5;
    double slope = 0, along = 0;
    for (const double sign : {1.0, -1.0}) {
      Tensors moved = given;
      for (std::int64_t i = 0; i < direction.size(); ++i)
        moved[input.name].set(i, given.at(input.name).at(i) + sign * kStep * direction.at(i));
      slope += sign * outputs_of(loss, moved).at("loss").at(0) / (2 * kStep);
    }
    for (std::int64_t i = 0; i < direction.size(); ++i) along += direction.at(i) * found->second.at(i);
    EXPECT_NEAR(along, slope, 1e-7 * (1 + std::abs(slope))) << input.name;
  }
  EXPECT_GT(trainable, 0U);
  using Kind = RecomputePolicy::Kind;
  for (const RecomputePolicy& policy : {RecomputePolicy{Kind::attention, {}}, RecomputePolicy{Kind::block, {}},
                                        RecomputePolicy{Kind::named, {"attn.o", "mlp.hidden"}}}) {
    EXPECT_EQ(gradients_of(loss, given, policy), gradients) << static_cast<int>(policy.kind);
  }
}

}  // namespace systole

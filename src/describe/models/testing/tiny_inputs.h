#pragma once
// For tests: tensors for a model's graphs. A parameter's values depend only on its name, so all graphs of a model, and
// models that share names, get the same values. None is left at zero or one, so biases and scales matter.

#include <map>
#include <string>
#include <vector>

#include "describe/ir/evaluate.h"
#include "describe/passes/passes.h"
#include "ground/base/philox.h"

namespace systole {

inline HostTensor random_tensor(const Type& type, const std::string& name, double mean, double spread) {
  std::uint64_t key = 7;
  for (const char c : name) key = key * 131 + static_cast<unsigned char>(c);
  PhiloxStream random(key);
  HostTensor tensor(type.dtype, type.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, mean + spread * (2 * random.uniform() - 1));
  return tensor;
}

inline HostTensor random_ids(const Type& type, std::uint64_t key, std::int64_t bound) {
  PhiloxStream random(key);
  HostTensor tensor(type.dtype, type.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set(i, static_cast<double>(random.below(static_cast<std::uint64_t>(bound))));
  return tensor;
}

inline HostTensor ints(Shape shape, std::vector<double> values) {
  return HostTensor(DType::i32, std::move(shape), values);
}
inline HostTensor scalar(double value) { return HostTensor(DType::i64, {}, std::vector<double>{value}); }

// The graph with every f32 turned into f64.
inline Graph in_f64(const Graph& graph) {
  return apply_precision(graph, {DType::f64, DType::f64, DType::f64, DType::f64});
}

// One tensor per input of the graph: parameters as above, the others from `data`.
inline std::vector<HostTensor> arguments(const Graph& graph, const std::map<std::string, HostTensor>& data) {
  std::vector<HostTensor> tensors;
  for (const GraphInput& input : graph.inputs()) {
    const bool ones = input.parameter && input.parameter->init.kind == Init::Kind::ones;
    tensors.push_back(input.parameter ? random_tensor(graph.type(input.value), input.name, ones ? 1 : 0, 0.3)
                                      : data.at(input.name));
  }
  return tensors;
}

inline std::vector<HostTensor> run(const Graph& graph, const std::map<std::string, HostTensor>& data) {
  return evaluate(graph, arguments(graph, data));
}

}  // namespace systole

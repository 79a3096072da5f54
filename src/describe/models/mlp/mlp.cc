// Weights begin as normal(sqrt(2 / inputs)) before an activation (He et al., arXiv:1502.01852) and normal(sqrt(1 /
// inputs)) before the output, biases at zero.

#include "describe/models/mlp/mlp.h"

#include <cmath>

#include "describe/models/activation.h"
#include "describe/models/dropout.h"
#include "describe/models/layers.h"

namespace systole {
namespace {

MlpConfig checked(const MlpConfig& config) {
  auto positive = [](const char* key, std::int64_t value) {
    if (value < 1) fail(error(ErrorKind::invalid, "model.{} is {}, must be at least 1", key, value));
  };
  positive("inputs", config.inputs);
  positive("outputs", config.outputs);
  for (const std::int64_t width : config.hidden) positive("hidden", width);
  if (!(config.dropout >= 0 && config.dropout < 1))
    fail(error(ErrorKind::invalid, "model.dropout is {}, must be from 0 up to but not 1", config.dropout));
  return config;
}

std::string weight_of(std::size_t layer) { return fmt::format("layers.{}.weight", layer); }
std::string bias_of(std::size_t layer) { return fmt::format("layers.{}.bias", layer); }

std::vector<Parameter> parameters_of(const MlpConfig& config) {
  std::vector<Parameter> list;
  std::int64_t in = config.inputs;
  std::string in_name = "inputs";
  for (std::size_t layer = 0; layer <= config.hidden.size(); ++layer) {
    const bool last = layer == config.hidden.size();
    const std::int64_t out = last ? config.outputs : config.hidden[layer];
    const std::string out_name = last ? "outputs" : "mlp";
    const double stddev = std::sqrt((last ? 1.0 : 2.0) / static_cast<double>(in));
    list.push_back({weight_of(layer),
                    Type(DType::f32, {in, out}, {in_name, out_name}),
                    {Init::Kind::normal, stddev},
                    true,
                    true,
                    0});
    if (config.bias) list.push_back({bias_of(layer), Type(DType::f32, {out}, {out_name}), {}, true, false, 0});
    in = out;
    in_name = out_name;
  }
  return list;
}

class Mlp final : public Model {
 public:
  explicit Mlp(const MlpConfig& config) : config_(checked(config)), parameters_(parameters_of(config_)) {}

  const char* family() const override { return "mlp"; }
  Task task() const override { return classifies() ? Task::classification : Task::regression; }
  const std::vector<Parameter>& parameters() const override { return parameters_; }

  Graph loss(const BatchShape& shape, bool training) const override {
    Graph graph("loss");
    const Value prediction = predict(graph, shape.rows, training);
    if (classifies()) {
      const Value labels = graph.input("labels", Type(DType::i32, {shape.rows}, {"batch"}));
      graph.output("loss", sum_all(cross_entropy(prediction, labels).loss));
    } else {
      const Value difference = sub(prediction, graph.input("y", type_of(shape.rows, config_.outputs, "outputs")));
      graph.output("loss", scale(sum_of_squares(difference), 1 / static_cast<double>(config_.outputs)));
    }
    return graph;
  }

  Graph forward(const BatchShape& shape) const override {
    Graph graph("forward");
    graph.output(classifies() ? "logits" : "prediction", predict(graph, shape.rows, false));
    return graph;
  }

 private:
  bool classifies() const { return config_.loss == ModelSpec::Loss::cross_entropy; }

  Type type_of(std::int64_t rows, std::int64_t size, const char* name) const {
    return Type(DType::f32, {rows, size}, {"batch", name});
  }

  Value affine(const Parameters& w, std::size_t layer, Value x) const {
    const Value y = contract(x, w[weight_of(layer)], "bi,io->bo");
    return config_.bias ? add(y, broadcast_last(w[bias_of(layer)], y.type())) : y;
  }

  Value predict(Graph& graph, std::int64_t rows, bool training) const {
    const Parameters w(graph, parameters_);
    Value x = graph.input("x", type_of(rows, config_.inputs, "inputs"));
    std::optional<DropoutKey> key;
    if (training && config_.dropout > 0 && !config_.hidden.empty()) key = dropout_inputs(graph);
    for (std::size_t layer = 0; layer < config_.hidden.size(); ++layer) {
      const Value hidden = affine(w, layer, x).named("mlp.hidden");
      x = activate(config_.activation, hidden);
      if (key) x = drop_at(x, *key, constant(graph, Type(DType::i64, {}), static_cast<double>(layer)), config_.dropout);
    }
    return affine(w, config_.hidden.size(), x).named("prediction");
  }

  MlpConfig config_;
  std::vector<Parameter> parameters_;
};

}  // namespace

MlpConfig mlp_config(const ModelSpec& spec) {
  MlpConfig config;
  config.inputs = spec.inputs;
  config.outputs = spec.outputs;
  config.hidden = spec.hidden;
  config.activation = spec.activation;
  config.loss = spec.loss;
  config.bias = spec.bias;
  config.dropout = spec.dropout;
  return config;
}

std::unique_ptr<const Model> make_mlp(const MlpConfig& config) { return std::make_unique<const Mlp>(config); }

}  // namespace systole

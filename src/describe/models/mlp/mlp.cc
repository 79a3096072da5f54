// Initial weights: normal(sqrt(2 / inputs)) before an activation (He et al., arXiv:1502.01852), normal(sqrt(1 /
// inputs)) before the output. Initial biases: zero.

#include "describe/models/mlp/mlp.h"

#include <array>
#include <cmath>

#include "describe/models/activation.h"
#include "describe/models/dropout.h"
#include "describe/models/layers.h"
#include "describe/models/sizes.h"

namespace systole {
namespace {

MlpSpec checked(const MlpSpec& config) {
  require_positive("inputs", config.inputs);
  require_positive("outputs", config.outputs);
  for (const std::int64_t width : config.hidden) require_positive("hidden", width);
  require_share("dropout", config.dropout);
  return config;
}

std::string weight_of(std::size_t layer) { return fmt::format("layers.{}.weight", layer); }
std::string bias_of(std::size_t layer) { return fmt::format("layers.{}.bias", layer); }

std::vector<Parameter> parameters_of(const MlpSpec& config) {
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
  explicit Mlp(const MlpSpec& config) : Model(config, parameters_of(config)) {}

  Graph loss(const BatchShape& shape, bool training) const override {
    Graph graph("loss");
    const Value prediction = predict(graph, shape.rows, training);
    if (classifies()) {
      const Value labels = graph.input("labels", Type(DType::i32, {shape.rows}, {"batch"}));
      graph.output("loss", sum_all(cross_entropy(prediction, labels).loss));
    } else {
      Value difference = sub(prediction, graph.input("y", type_of(shape.rows, config_.outputs, "outputs")));
      if (shape.padded) {  // the prediction for an empty row is not zero where there are biases
        const Value filled = graph.input(kFilled, Type(DType::f32, {shape.rows}, {"batch"}));
        difference = mul(difference, broadcast(filled, difference.type(), std::array{0}));
      }
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
  bool classifies() const { return config_.task() == Task::classification; }

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

  const MlpSpec& config_ = spec_.as<MlpSpec>();
};

}  // namespace

std::unique_ptr<const Model> make_mlp(const MlpSpec& config) { return std::make_unique<const Mlp>(checked(config)); }

}  // namespace systole

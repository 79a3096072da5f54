// Parameters:
//   embed.tokens[vocab, embed]  embed.positions[position, embed]  embed.types[type, embed]  embed.norm.{scale,bias}
//   blocks.{layer}.attn.{q,k,v}[embed, heads, head]  blocks.{layer}.attn.o[heads, head, embed]  blocks.{layer}.norm1
//   blocks.{layer}.mlp.up[embed, mlp]  blocks.{layer}.mlp.down[mlp, embed]  blocks.{layer}.norm2
//   head.dense[embed, hidden]  head.norm  head.bias[vocab]
// Each projection has a bias. Initial values as published: weights normal(0.02), biases 0, scales 1.

#include "describe/models/bert/bert.h"

#include "describe/models/activation.h"
#include "describe/models/parameter_list.h"
#include "describe/models/sizes.h"
#include "describe/models/stack.h"

namespace systole {
namespace {

constexpr double kStddev = 0.02;

BertSpec checked(BertSpec config) {
  if (config.mlp == 0) config.mlp = 4 * config.width;
  require_positive("layers", config.layers);
  require_positive("width", config.width);
  require_positive("heads", config.heads);
  require_positive("mlp", config.mlp);
  require_positive("vocabulary", config.vocabulary);
  require_positive("context", config.context);
  require_positive("types", config.types);
  require_divides("heads", config.heads, "width", config.width);
  require_share("dropout", config.dropout);
  return config;
}

std::vector<Parameter> parameters_of(const BertSpec& c) {
  ParameterList list({{'v', {"vocab", c.vocabulary}},
                      {'p', {"position", c.context}},
                      {'y', {"type", c.types}},
                      {'l', {"layer", c.layers}},
                      {'e', {"embed", c.width}},
                      {'f', {"hidden", c.width}},
                      {'h', {"heads", c.heads}},
                      {'d', {"head", c.head_width()}},
                      {'m', {"mlp", c.mlp}}});
  const auto norm = [&list](const std::string& name, const std::string& dims) {
    list.scale(name + ".scale", dims);
    list.bias(name + ".bias", dims);
  };
  list.weight("embed.tokens", "ve", kStddev);
  list.weight("embed.positions", "pe", kStddev);
  list.weight("embed.types", "ye", kStddev);
  norm("embed.norm", "e");
  for (const char* name : {"attn.q", "attn.k", "attn.v"})
    list.projection(std::string("blocks.{layer}.") + name, "e", "hd", kStddev, true);
  list.projection("blocks.{layer}.attn.o", "hd", "e", kStddev, true);
  norm("blocks.{layer}.norm1", "le");
  list.projection("blocks.{layer}.mlp.up", "e", "m", kStddev, true);
  list.projection("blocks.{layer}.mlp.down", "m", "e", kStddev, true);
  norm("blocks.{layer}.norm2", "le");
  list.projection("head.dense", "e", "f", kStddev, true);
  norm("head.norm", "f");
  list.bias("head.bias", "v");
  return list.take();
}

class Bert final : public Model {
 public:
  Bert(const BertSpec& config, bool unrolled) : Model(config, parameters_of(config)), unrolled_(unrolled) {}

  Graph loss(const BatchShape& shape, bool training) const override;
  Graph forward(const BatchShape& shape) const override;
  Graph hidden(const BatchShape& shape) const override;

 private:
  // The encoder's output rows. `labels` is declared between tokens and segments if it is not null.
  Value trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training,
              std::optional<Value>* labels) const;
  Value block(const Stack& stack, Value x, Value segments) const;
  Value head(const Parameters& w, Value x) const;

  const BertSpec& config_ = spec_.as<BertSpec>();
  bool unrolled_;
};

Value Bert::block(const Stack& stack, Value x, Value segments) const {
  x.named("block.in");
  const auto norm = [&](Value y, const std::string& name) {
    return layer_norm(y, stack[name + ".scale"], stack[name + ".bias"], config_.eps).y;
  };
  const Value q = stack.project(x, "attn.q", "e", "hd").named("attn.q");
  const Value k = stack.project(x, "attn.k", "e", "hd").named("attn.k");
  const Value v = stack.project(x, "attn.v", "e", "hd").named("attn.v");
  const Value o =
      attention(q, k, v, {.causal = false, .q_segments = segments, .k_segments = segments}).o.named("attn.o");
  const Value mid = norm(add(x, stack.drop(stack.project(o, "attn.o", "hd", "e").named("attn.out"), 0)), "norm1");
  const Value hidden = stack.project(mid, "mlp.up", "e", "m").named("mlp.hidden");
  const Value act = activate(config_.activation, hidden).named("mlp.act");
  return norm(add(mid, stack.drop(stack.project(act, "mlp.down", "m", "e").named("mlp.out"), 1)), "norm2");
}

Value Bert::trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training,
                  std::optional<Value>* labels) const {
  const std::int64_t sequence_length = shape.sequence_length == 0 ? config_.context : shape.sequence_length;
  require_length("rows", sequence_length, config_.context, "context");
  const Type ids(DType::i32, {shape.rows, sequence_length}, {"batch", "seq"});
  const Value tokens = graph.input("tokens", ids);
  if (labels != nullptr) *labels = graph.input("labels", ids);
  const Value segments = graph.input("segments", ids), positions = graph.input("positions", ids),
              types = graph.input("types", ids);
  const Value sum = add(add(embedding(w["embed.tokens"], tokens), embedding(w["embed.types"], types)),
                        embedding(w["embed.positions"], positions));
  Value x = layer_norm(sum, w["embed.norm.scale"], w["embed.norm.bias"], config_.eps).y;
  StackDropout dropout{std::nullopt, config_.dropout, 1, 2};
  if (training && config_.dropout > 0) {
    dropout.key = dropout_inputs(graph);
    x = drop_at(x, *dropout.key, constant(graph, Type(DType::i64, {}), 0), config_.dropout);
  }
  Layers layers("block", config_.layers);
  const Value carried = layers.carry("x", x);
  const Stack stack(layers, w, parameters_, "blocks.", dropout);
  const Value seen = layers.share("segments", segments);
  layers.body().output("x", block(stack, carried, seen));
  return layers.run(unrolled_).carries[0];
}

Value Bert::head(const Parameters& w, Value x) const {
  const Value dense = add_bias(contract(x, w["head.dense"], "bse,ef->bsf"), w["head.dense_bias"]);
  const Value n =
      layer_norm(activate(config_.activation, dense), w["head.norm.scale"], w["head.norm.bias"], config_.eps)
          .y.named("head.norm");
  return add_bias(contract(n, w["embed.tokens"], "bse,ve->bsv"), w["head.bias"]).named("logits");
}

Graph Bert::loss(const BatchShape& shape, bool training) const {
  Graph graph("loss");
  const Parameters w(graph, parameters_);
  std::optional<Value> labels;
  const Value x = trunk(graph, w, shape, training, &labels);
  graph.output("loss", sum_all(cross_entropy(head(w, x), *labels).loss));
  return graph;
}

Graph Bert::forward(const BatchShape& shape) const {
  Graph graph("forward");
  const Parameters w(graph, parameters_);
  graph.output("logits", head(w, trunk(graph, w, shape, false, nullptr)));
  return graph;
}

Graph Bert::hidden(const BatchShape& shape) const {
  Graph graph("hidden");
  const Parameters w(graph, parameters_);
  graph.output("hidden", trunk(graph, w, shape, false, nullptr));
  return graph;
}

}  // namespace

std::unique_ptr<const Model> make_bert(const BertSpec& config, bool unrolled) {
  return std::make_unique<const Bert>(checked(config), unrolled);
}

}  // namespace systole

#include "describe/models/gpt/gpt.h"

#include "describe/models/gpt/block.h"

namespace systole {
namespace {

class Gpt final : public Model {
 public:
  explicit Gpt(const GptConfig& config) : config_(checked(config)), parameters_(gpt_parameters(config_)) {}

  const char* family() const override { return "gpt"; }
  Task task() const override { return Task::language; }
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  std::int64_t vocabulary() const override { return config_.vocabulary; }
  std::int64_t context() const override { return config_.context; }

  Graph loss(const BatchShape& shape, bool training) const override;
  Graph forward(const BatchShape& shape) const override;
  Graph prefill(std::int64_t batch, std::int64_t bucket, std::int64_t cache) const override;
  Graph decode(std::int64_t batch, std::int64_t cache) const override;

 private:
  Value embed(const Parameters& w, Value tokens, Value positions) const;
  // The residual stream after all blocks, of whole rows. `labels` is declared between tokens and segments if asked for.
  Value trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training, std::optional<Value>* labels) const;
  Value head(const Parameters& w, Value x, const std::string& spec) const;
  Value place(Value x, const std::optional<Value>& positions) const { return positions ? rotary(x, *positions, config_.theta) : x; }
  // Positions as the blocks need them: none unless rotary.
  std::optional<Value> share_positions(Layers& layers, Value positions) const;
  void require_length(const char* what, std::int64_t length) const;
  Type cache_type(std::int64_t batch, std::int64_t cache) const;

  GptConfig config_;
  std::vector<Parameter> parameters_;
};

Type ids(std::int64_t rows, std::int64_t seq) { return Type(DType::i32, {rows, seq}, {"batch", "seq"}); }
Type per_row(std::int64_t rows) { return Type(DType::i32, {rows}, {"batch"}); }

void Gpt::require_length(const char* what, std::int64_t length) const {
  if (length >= 1 && length <= config_.context) return;
  fail(error(ErrorKind::invalid, "{} of {} positions, the model has {}", what, length, config_.context)
           .hinted(fmt::format("at most {}, or a larger model.context", config_.context)));
}

Type Gpt::cache_type(std::int64_t batch, std::int64_t cache) const {
  return Type(DType::f32, {config_.layers, batch, cache, config_.kv_heads, config_.head()},
              {"layer", "batch", "cache", "kv_heads", "head"});
}

Value Gpt::embed(const Parameters& w, Value tokens, Value positions) const {
  const Value x = embedding(w["embed.tokens"], tokens);
  return config_.position == ModelSpec::Position::learned ? add(x, embedding(w["embed.positions"], positions)) : x;
}

Value Gpt::head(const Parameters& w, Value x, const std::string& spec) const {
  const std::optional<Value> bias = has_norm_bias(config_) ? std::optional(w["norm.bias"]) : std::nullopt;
  const Value n = gpt_norm(config_, x, w["norm.scale"], bias).named("head.norm");
  return contract(n, w[config_.tied ? "embed.tokens" : "head"], spec).named("logits");
}

std::optional<Value> Gpt::share_positions(Layers& layers, Value positions) const {
  if (config_.position != ModelSpec::Position::rotary) return std::nullopt;
  return layers.share("positions", positions);
}

Value Gpt::trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training, std::optional<Value>* labels) const {
  require_length("rows", shape.seq);
  const Type type = ids(shape.rows, shape.seq);
  const Value tokens = graph.input("tokens", type);
  if (labels != nullptr) *labels = graph.input("labels", type);
  const Value segments = graph.input("segments", type), positions = graph.input("positions", type);
  Value x0 = embed(w, tokens, positions);
  std::optional<DropoutKey> key;
  if (training && config_.dropout > 0) {
    key = dropout_inputs(graph);
    x0 = drop_at(x0, *key, constant(graph, Type(DType::i64, {}), 0), config_.dropout);
  }
  Layers layers("block", config_.layers);
  const Value x = layers.carry("x", x0);
  const GptBlock block(layers, config_, w, key);
  const Value seen = layers.share("segments", segments);
  const std::optional<Value> at = share_positions(layers, positions);
  const Value y = block(x, [&](Value q, Value k, Value v) {
    return attention(place(q, at), place(k, at), v, {.q_segments = seen, .k_segments = seen}).o;
  });
  layers.body().output("x", y);
  return layers.run(config_.unrolled).carries[0];
}

Graph Gpt::loss(const BatchShape& shape, bool training) const {
  Graph graph("loss");
  const Parameters w(graph, parameters_);
  std::optional<Value> labels;
  const Value x = trunk(graph, w, shape, training, &labels);
  graph.output("loss", sum_all(cross_entropy(head(w, x, "bse,ve->bsv"), *labels).loss));
  return graph;
}

Graph Gpt::forward(const BatchShape& shape) const {
  Graph graph("forward");
  const Parameters w(graph, parameters_);
  graph.output("logits", head(w, trunk(graph, w, shape, false, nullptr), "bse,ve->bsv"));
  return graph;
}

Graph Gpt::prefill(std::int64_t batch, std::int64_t bucket, std::int64_t cache) const {
  require_length("a cache", cache);
  if (bucket > cache) fail(error(ErrorKind::invalid, "a bucket of {} positions for a cache of {}", bucket, cache));
  Graph graph("prefill");
  const Parameters w(graph, parameters_);
  const Value tokens = graph.input("tokens", ids(batch, bucket)), lengths = graph.input("lengths", per_row(batch));
  Layers layers("block", config_.layers);
  const Value positions = iota(graph, ids(batch, bucket), 1);
  const Value x = layers.carry("x", embed(w, tokens, positions));
  const GptBlock block(layers, config_, w, std::nullopt);
  const std::optional<Value> at = share_positions(layers, positions);
  std::optional<Value> keys, values;
  const Value y = block(x, [&](Value q, Value k, Value v) {
    k = place(k, at);
    keys = pad(k, {0, 0, 0, 0}, {0, cache - bucket, 0, 0}, 0);
    values = pad(v, {0, 0, 0, 0}, {0, cache - bucket, 0, 0}, 0);
    return attention(place(q, at), k, v, {}).o;
  });
  layers.body().output("x", y);
  layers.body().output("k", *keys);
  layers.body().output("v", *values);
  const Repeat all = layers.run(config_.unrolled);
  const Value last = take_row(all.carries[0], sub(lengths, full_like(lengths, 1)));
  graph.output("logits", head(w, last, "be,ve->bv"));
  graph.output("cache.k", all.outputs[0]);
  graph.output("cache.v", all.outputs[1]);
  return graph;
}

Graph Gpt::decode(std::int64_t batch, std::int64_t cache) const {
  require_length("a cache", cache);
  Graph graph("decode");
  const Parameters w(graph, parameters_);
  const Value tokens = graph.input("tokens", ids(batch, 1)), position = graph.input("position", per_row(batch));
  const Value cache_k = graph.input("cache.k", cache_type(batch, cache)), cache_v = graph.input("cache.v", cache_type(batch, cache));
  Layers layers("block", config_.layers);
  const Value positions = reshape(position, ids(batch, 1));
  const Value x = layers.carry("x", embed(w, tokens, positions));
  const Value old_k = layers.slice("cache.k", cache_k), old_v = layers.slice("cache.v", cache_v);
  const GptBlock block(layers, config_, w, std::nullopt);
  const Value row = layers.share("position", position);
  const std::optional<Value> at = share_positions(layers, positions);
  std::optional<Value> keys, values;
  const Value y = block(x, [&](Value q, Value k, Value v) {
    keys = cache_write(old_k, place(k, at), row);
    values = cache_write(old_v, v, row);
    return attention(place(q, at), *keys, *values, {.offset = row}).o;
  });
  layers.body().output("x", y);
  layers.body().output("k", *keys);
  layers.body().output("v", *values);
  const Repeat all = layers.run(config_.unrolled);
  const Value last = reshape(all.carries[0], Type(DType::f32, {batch, config_.width}, {"batch", "embed"}));
  graph.output("logits", head(w, last, "be,ve->bv"));
  graph.output("cache.k", all.outputs[0]);
  graph.output("cache.v", all.outputs[1]);
  return graph;
}

}  // namespace

std::unique_ptr<const Model> make_gpt(const GptConfig& config) { return std::make_unique<const Gpt>(config); }

}  // namespace systole

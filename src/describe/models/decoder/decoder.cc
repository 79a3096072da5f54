#include "describe/models/decoder/decoder.h"

#include "describe/models/decoder/block.h"
#include "describe/models/sizes.h"

namespace systole {
namespace {

class Decoder final : public Model {
 public:
  explicit Decoder(const DecoderConfig& config)
      : config_(checked(config)), groups_(layer_groups(config_)), parameters_(decoder_parameters(config_)) {}

  const char* family() const override { return config_.family; }
  Task task() const override { return Task::language; }
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  std::int64_t vocabulary() const override { return config_.vocabulary; }
  std::int64_t context() const override { return config_.context; }

  Graph loss(const BatchShape& shape, bool training) const override;
  Graph forward(const BatchShape& shape) const override;
  Graph prefill(std::int64_t slots, std::int64_t bucket, std::int64_t cache) const override;
  Graph decode(std::int64_t slots, std::int64_t cache) const override;

 private:
  Value embed(const Parameters& w, Value tokens, Value positions) const;
  // The residual stream after all blocks, of whole rows, and of training with experts the sums of what the blocks tell
  // of them: choices and those dropped where any can be. `labels` is declared between tokens and segments if asked for.
  BlockResult trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training,
                    std::optional<Value>* labels) const;
  Value head(const Parameters& w, Value x, const std::string& spec) const;
  Value with_balance(Value loss, const std::optional<Value>& balance, Value labels) const;
  std::function<Value(Value)> place(const std::optional<Value>& positions) const {
    return [this, positions](Value x) {
      return positions ? rotary(x, *positions, {config_.theta, config_.rope_scaling}) : x;
    };
  }
  // Positions as the blocks need them: none unless rotary.
  std::optional<Value> share_positions(Layers& layers, Value positions) const;

  struct Caches {
    Value k, v;
  };
  Caches cache_inputs(Graph& graph, std::int64_t slots, std::int64_t cache) const;
  // Closes the body and declares the caches as outputs; the residual stream after all blocks.
  Value run_with_caches(Layers& layers, Graph& graph, Value x, const Caches& next) const;

  // Of prefill and decode, whose caches are of layers that are all alike.
  const LayerGroup& only_group() const;

  DecoderConfig config_;
  std::vector<LayerGroup> groups_;
  std::vector<Parameter> parameters_;
};

Type ids(std::int64_t rows, std::int64_t seq) { return Type(DType::i32, {rows, seq}, {"batch", "seq"}); }
Type per_row(std::int64_t rows) { return Type(DType::i32, {rows}, {"batch"}); }

Value Decoder::embed(const Parameters& w, Value tokens, Value positions) const {
  const Value x = embedding(w["embed.tokens"], tokens);
  return config_.position == ModelSpec::Position::learned ? add(x, embedding(w["embed.positions"], positions)) : x;
}

Value Decoder::head(const Parameters& w, Value x, const std::string& spec) const {
  const std::optional<Value> bias = has_norm_bias(config_) ? std::optional(w["norm.bias"]) : std::nullopt;
  const Value n = decoder_norm(config_, x, w["norm.scale"], bias).named("head.norm");
  return contract(n, w[config_.tied ? "embed.tokens" : "head"], spec).named("logits");
}

std::optional<Value> Decoder::share_positions(Layers& layers, Value positions) const {
  if (config_.position != ModelSpec::Position::rotary) return std::nullopt;
  return layers.share("positions", positions);
}

BlockResult Decoder::trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training,
                           std::optional<Value>* labels) const {
  require_length("rows", shape.seq, config_.context, "context");
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
  BlockResult all{x0, {}, {}, {}};
  for (const LayerGroup& group : groups_) {
    Layers layers(group.name, group.count);
    const Value x = layers.carry("x", all.x);
    std::optional<Value> balance;
    const bool experts = training && group.period.back().experts.count > 0;
    const bool counts = experts && !config_.experts.dropless;
    if (experts && config_.experts.balance > 0)
      balance = layers.carry("balance", constant(graph, Type(DType::f32, {}), 0));
    const std::vector<DecoderBlock> blocks = DecoderBlock::of(layers, group, w, parameters_, key);
    const Value seen = layers.share("segments", segments);
    const std::optional<Value> at = share_positions(layers, positions);
    const auto look = [&](Value q, Value k, Value v) {
      AttentionOptions options{.q_segments = seen, .k_segments = seen, .window = config_.window};
      if (config_.latent.on()) options.value = config_.latent.value;
      return attention(q, k, v, options).o;
    };
    BlockResult y{x, {}, {}, {}};
    for (const DecoderBlock& block : blocks) y = block(y.x, {place(at), look}, {.segments = seen});
    layers.body().output("x", y.x);
    if (balance) layers.body().output("balance", add(*balance, *y.balance));
    if (counts) {
      layers.body().output(kExpertChoices, *y.choices);
      layers.body().output(kDroppedChoices, *y.dropped);
    }
    const Repeat run = layers.run(config_.unrolled);
    all = {run.carries[0], {}, {}, {}};
    if (balance) all.balance = run.carries[1];
    if (counts) {
      all.choices = sum_all(run.outputs[0]);
      all.dropped = sum_all(run.outputs[1]);
    }
  }
  return all;
}

// The balancing loss is a mean over tokens: times the labels it is a sum over them, as the loss is.
Value Decoder::with_balance(Value loss, const std::optional<Value>& balance, Value labels) const {
  if (!balance) return loss;
  const std::vector<int> dims{0, 1};
  const Value told = compare(labels, full_like(labels, 0), "ge");
  const Value count = reduce_sum(told, dims, loss.dtype());
  return add(loss, mul(scale(*balance, config_.experts.balance), count));
}

Graph Decoder::loss(const BatchShape& shape, bool training) const {
  Graph graph("loss");
  const Parameters w(graph, parameters_);
  std::optional<Value> labels;
  const BlockResult all = trunk(graph, w, shape, training, &labels);
  const Value loss = sum_all(cross_entropy(head(w, all.x, "bse,ve->bsv"), *labels).loss);
  graph.output("loss", with_balance(loss, all.balance, *labels));
  if (all.choices) graph.output(kExpertChoices, *all.choices);
  if (all.dropped) graph.output(kDroppedChoices, *all.dropped);
  return graph;
}

Graph Decoder::forward(const BatchShape& shape) const {
  Graph graph("forward");
  const Parameters w(graph, parameters_);
  graph.output("logits", head(w, trunk(graph, w, shape, false, nullptr).x, "bse,ve->bsv"));
  return graph;
}

const LayerGroup& Decoder::only_group() const {
  const char* key = config_.latent.on()         ? "model.mla"
                    : groups_.size() > 1        ? "model.moe.dense_layers"
                    : groups_.back().size() > 1 ? "model.moe.every"
                                                : nullptr;
  if (key != nullptr) {
    fail(error(ErrorKind::unsupported, "{}: such a model is trained and evaluated, and generates nothing yet", key)
             .hinted("train.evaluate says what it has learned"));
  }
  return groups_[0];
}

// In a layer the caches of all slots lie one after the other, so a slot begins at row slot × cache.
Graph Decoder::prefill(std::int64_t slots, std::int64_t bucket, std::int64_t cache) const {
  require_length("a cache", cache, config_.context, "context");
  if (bucket < 1 || bucket > cache)
    fail(error(ErrorKind::invalid, "a bucket of {} positions for a cache of {}", bucket, cache));
  Graph graph("prefill");
  const Parameters w(graph, parameters_);
  const Value tokens = graph.input("tokens", ids(1, bucket)), length = graph.input("length", per_row(1)),
              slot = graph.input("slot", per_row(1));
  const Caches outer = cache_inputs(graph, slots, cache);
  const Value positions = iota(graph, ids(1, bucket), 1);
  Layers layers("block", config_.layers);
  const Value x = layers.carry("x", embed(w, tokens, positions));
  const Caches old{layers.slice("cache.k", outer.k), layers.slice("cache.v", outer.v)};
  const DecoderBlock block = DecoderBlock::of(layers, only_group(), w, parameters_, std::nullopt)[0];
  const Value row = layers.share("row", mul(slot, full_like(slot, static_cast<double>(cache))));
  const std::optional<Value> at = share_positions(layers, positions);
  const auto written = [&](Value all, Value rows) {
    const Type type = all.type();
    const Type flat(type.dtype, {1, slots * cache, type.size(2), type.size(3)}, {"", "cache", "kv_heads", "head"});
    return reshape(cache_write(reshape(all, flat), rows, row), type);
  };
  std::optional<Caches> next;
  const auto attend = [&](Value q, Value k, Value v) {
    next = Caches{written(old.k, k), written(old.v, v)};
    return attention(q, k, v, {.window = config_.window}).o;
  };
  const Value y = block(x, {place(at), attend}, {.serving = true}).x;
  const Value all = run_with_caches(layers, graph, y, *next);
  graph.output("logits", head(w, take_row(all, sub(length, full_like(length, 1))), "be,ve->bv"));
  return graph;
}

Graph Decoder::decode(std::int64_t slots, std::int64_t cache) const {
  require_length("a cache", cache, config_.context, "context");
  Graph graph("decode");
  const Parameters w(graph, parameters_);
  const Value tokens = graph.input("tokens", ids(slots, 1)), position = graph.input("position", per_row(slots));
  const Caches outer = cache_inputs(graph, slots, cache);
  const Value positions = reshape(position, ids(slots, 1));
  Layers layers("block", config_.layers);
  const Value x = layers.carry("x", embed(w, tokens, positions));
  const Caches old{layers.slice("cache.k", outer.k), layers.slice("cache.v", outer.v)};
  const DecoderBlock block = DecoderBlock::of(layers, only_group(), w, parameters_, std::nullopt)[0];
  const Value row = layers.share("position", position);
  const std::optional<Value> at = share_positions(layers, positions);
  std::optional<Caches> next;
  const auto attend = [&](Value q, Value k, Value v) {
    next = Caches{cache_write(old.k, k, row), cache_write(old.v, v, row)};
    return attention(q, next->k, next->v, {.offset = row, .window = config_.window}).o;
  };
  const Value y = block(x, {place(at), attend}, {.serving = true}).x;
  const Value all = run_with_caches(layers, graph, y, *next);
  const Value last = reshape(all, Type(DType::f32, {slots, config_.width}, {"batch", "embed"}));
  graph.output("logits", head(w, last, "be,ve->bv"));
  return graph;
}

Decoder::Caches Decoder::cache_inputs(Graph& graph, std::int64_t slots, std::int64_t cache) const {
  const Type type(DType::f32, {config_.layers, slots, cache, config_.kv_heads, config_.head},
                  {"layer", "batch", "cache", "kv_heads", "head"});
  const Value k = graph.input("cache.k", type);
  return {k, graph.input("cache.v", type)};
}

Value Decoder::run_with_caches(Layers& layers, Graph& graph, Value x, const Caches& next) const {
  layers.body().output("x", x);
  layers.body().output("k", next.k);
  layers.body().output("v", next.v);
  const Repeat all = layers.run(config_.unrolled);
  graph.output("cache.k", all.outputs[0]);
  graph.output("cache.v", all.outputs[1]);
  return all.carries[0];
}

}  // namespace

std::unique_ptr<const Model> make_decoder(const DecoderConfig& config) {
  return std::make_unique<const Decoder>(config);
}

}  // namespace systole

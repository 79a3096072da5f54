#include "describe/models/decoder/decoder.h"

#include <algorithm>
#include <map>

#include "describe/models/decoder/block.h"
#include "describe/models/sizes.h"

namespace systole {
namespace {

class Decoder final : public Model {
 public:
  Decoder(const DecoderSpec& config, bool unrolled)
      : Model(config, decoder_parameters(config)), unrolled_(unrolled), groups_(layer_groups(config)) {}

  Graph loss(const BatchShape& shape, bool training) const override;
  Graph forward(const BatchShape& shape) const override;
  Graph hidden(const BatchShape& shape) const override;
  Graph step(std::int64_t batch, std::int64_t tokens, const PagedCache& cache) const override;
  Graph score(std::int64_t tokens, const PagedCache& cache) const override;

 private:
  Value embed(const Parameters& w, Value tokens, Value positions) const;
  // The residual stream after all blocks, for whole rows. In training with experts also the sums of their balance, and,
  // if tokens can be dropped, of choices and dropped. `labels` is declared between tokens and segments if not null.
  BlockResult trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training,
                    std::optional<Value>* labels) const;
  Value last_norm(const Parameters& w, Value x) const;
  Value head(const Parameters& w, Value x, const std::string& spec) const;
  Value with_balance(Value loss, const std::optional<Value>& balance, Value labels) const;
  std::function<Value(Value)> place(const std::optional<Value>& positions) const {
    return [this, positions](Value x) { return positions ? rotary(x, *positions, {config_.theta, scaling()}) : x; };
  }
  std::optional<RotaryScaling> scaling() const {
    const RopeScaling& r = config_.rope_scaling;
    if (r.kind == RopeScaling::Kind::none) return std::nullopt;
    return RotaryScaling{r.factor, r.low_freq_factor, r.high_freq_factor, r.original_context};
  }
  // Positions as an input of the blocks; only for rotary.
  std::optional<Value> share_positions(Layers& layers, Value positions) const;

  // The group of a step, whose cached layers are all alike.
  const LayerGroup& only_group() const;
  // Inputs and trunk of `step` and `score`; the inputs between the two are declared by these.
  struct StepInputs {
    Value tokens, table, start;
  };
  StepInputs step_inputs(Graph& graph, std::int64_t batch, std::int64_t tokens, const PagedCache& cache) const;
  // The adapters of one layer, by their projections.
  struct AdapterSlice {
    Value a, b;
  };
  using AdapterSlices = std::map<std::string, AdapterSlice>;
  AdapterSlices adapter_slices(Graph& graph, Layers& layers, const ServedAdapters& adapters) const;
  static Value adapted(Value x, Value y, const AdapterSlice& adapter, Value which);
  // The residual stream after all blocks, f32[batch, tokens, embed]. Takes and gives the caches.
  Value cached_trunk(Graph& graph, const Parameters& w, const StepInputs& in, const PagedCache& cache) const;

  const DecoderSpec& config_ = spec_.as<DecoderSpec>();
  bool unrolled_;
  std::vector<LayerGroup> groups_;
};

Type ids(std::int64_t rows, std::int64_t sequence_length) {
  return Type(DType::i32, {rows, sequence_length}, {"batch", "seq"});
}
Type per_row(std::int64_t rows) { return Type(DType::i32, {rows}, {"batch"}); }

Value Decoder::embed(const Parameters& w, Value tokens, Value positions) const {
  const Value x = embedding(w["embed.tokens"], tokens);
  return config_.position == Position::learned ? add(x, embedding(w["embed.positions"], positions)) : x;
}

Value Decoder::last_norm(const Parameters& w, Value x) const {
  const std::optional<Value> bias = has_norm_bias(config_) ? std::optional(w["norm.bias"]) : std::nullopt;
  return decoder_norm(config_, x, w["norm.scale"], bias).named("head.norm");
}

Value Decoder::head(const Parameters& w, Value x, const std::string& spec) const {
  return contract(last_norm(w, x), w[config_.tied ? "embed.tokens" : "head"], spec).named("logits");
}

std::optional<Value> Decoder::share_positions(Layers& layers, Value positions) const {
  if (config_.position != Position::rotary) return std::nullopt;
  return layers.share("positions", positions);
}

BlockResult Decoder::trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training,
                           std::optional<Value>* labels) const {
  const std::int64_t sequence_length = shape.sequence_length == 0 ? config_.context : shape.sequence_length;
  require_length("rows", sequence_length, config_.context, "context");
  const Type type = ids(shape.rows, sequence_length);
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
    const bool experts = training && group.period.back().moe.experts > 0;
    const bool counts = experts && !config_.moe.dropless;
    if (experts && config_.moe.balance > 0) balance = layers.carry("balance", constant(graph, Type(DType::f32, {}), 0));
    const std::vector<DecoderBlock> blocks = DecoderBlock::of(layers, group, w, parameters_, key);
    const Value seen = layers.share("segments", segments);
    const std::optional<Value> at = share_positions(layers, positions);
    const auto look = [&](Value q, Value k, Value v) {
      AttentionOptions options{.q_segments = seen, .k_segments = seen, .window = config_.window};
      if (config_.mla.on()) options.value = config_.mla.value;
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
    const Repeat run = layers.run(unrolled_);
    all = {run.carries[0], {}, {}, {}};
    if (balance) all.balance = run.carries[1];
    if (counts) {
      all.choices = sum_all(run.outputs[0]);
      all.dropped = sum_all(run.outputs[1]);
    }
  }
  return all;
}

// The balancing loss is a mean over tokens; multiplied by the number of labels it is a sum, like the loss.
Value Decoder::with_balance(Value loss, const std::optional<Value>& balance, Value labels) const {
  if (!balance) return loss;
  const std::vector<int> dims{0, 1};
  const Value told = compare(labels, full_like(labels, 0), "ge");
  const Value count = reduce_sum(told, dims, loss.dtype());
  return add(loss, mul(scale(*balance, config_.moe.balance), count));
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

Graph Decoder::hidden(const BatchShape& shape) const {
  Graph graph("hidden");
  const Parameters w(graph, parameters_);
  graph.output("hidden", last_norm(w, trunk(graph, w, shape, false, nullptr).x));
  return graph;
}

const LayerGroup& Decoder::only_group() const {
  const char* key = config_.mla.on()            ? "model.mla"
                    : groups_.size() > 1        ? "model.moe.dense_layers"
                    : groups_.back().size() > 1 ? "model.moe.every"
                                                : nullptr;
  if (key != nullptr) {
    fail(key_error(ErrorKind::unsupported, key, "such a model is trained and evaluated, and generates nothing yet")
             .hinted("train.evaluate says what it has learned"));
  }
  return groups_[0];
}

Decoder::StepInputs Decoder::step_inputs(Graph& graph, std::int64_t batch, std::int64_t tokens,
                                         const PagedCache& cache) const {
  if (batch < 1 || tokens < 1 || cache.pages < 1 || cache.size < 1 || cache.entries * cache.size < tokens) {
    fail(error(ErrorKind::invalid, "a step of {} × {} tokens over tables of {} of {} pages of {}", batch, tokens,
               cache.entries, cache.pages, cache.size));
  }
  const Value ids_in = graph.input("tokens", ids(batch, tokens));
  const Value table = graph.input("table", Type(DType::i32, {batch, cache.entries}, {"batch", ""}));
  return {ids_in, table, graph.input("start", per_row(batch))};
}

Decoder::AdapterSlices Decoder::adapter_slices(Graph& graph, Layers& layers, const ServedAdapters& adapters) const {
  AdapterSlices slices;
  if (!adapters.any()) return slices;
  for (const std::string& name : adapters.projections) {
    const auto weight =
        std::ranges::find(parameters_, stack_name("blocks.", only_group().first) + name, &Parameter::name);
    const auto all = decoder_projections();
    const auto found = std::ranges::find_if(all, [&](const Projection& p) { return name == p.name; });
    if (weight == parameters_.end() || found == all.end())
      fail(error(ErrorKind::invalid, "an adapter of '{}', which the model lacks", name));
    const Shape& shape = weight->type.shape;
    const auto inputs = shape.begin() + 1 + static_cast<std::ptrdiff_t>(std::string_view(found->in).size());
    const auto input = [&](const std::string& tensor, const Shape& dims) {
      const Type type(DType::f32, {shape[0], adapters.count, adapters.rank, num_elements(dims)},
                      {"layer", "adapter", "", ""});
      return layers.slice(tensor, graph.input(tensor, type));
    };
    const Value a = input(adapter_a(name), Shape(shape.begin() + 1, inputs));
    slices.emplace(name, AdapterSlice{a, input(adapter_b(name), Shape(inputs, shape.end()))});
  }
  return slices;
}

// y with the dims of heads as one.
Value Decoder::adapted(Value x, Value y, const AdapterSlice& adapter, Value which) {
  const Type type = y.type();  // a copy: the graph grows below
  const auto flat = [](Value value) {
    const Type own = value.type();
    if (own.ndim() == 3) return value;
    Type rows(own.dtype, {own.size(0), own.size(1)}, {own.name(0), own.name(1)});
    rows.add_dim(num_elements(Shape(own.shape.begin() + 2, own.shape.end())), "");
    return reshape(value, rows);
  };
  const Value z = lora_rows(x, flat(y), adapter.a, adapter.b, which);
  return z.type() == type ? z : reshape(z, type);
}

Value Decoder::cached_trunk(Graph& graph, const Parameters& w, const StepInputs& in, const PagedCache& cache) const {
  const Type pool(cache.dtype, {config_.layers, cache.pages, cache.size, config_.kv_heads, config_.head},
                  {"layer", "page", "place", "kv_heads", "head"});
  const Value all_k = graph.input("cache.k", pool), all_v = graph.input("cache.v", pool);
  const int rows[] = {0};
  const Type type = in.tokens.type();  // a copy: the graph grows below
  const Value positions = add(broadcast(in.start, type, rows), iota(graph, type, 1));
  Layers layers("block", config_.layers);
  const Value x = layers.carry("x", embed(w, in.tokens, positions));
  const Value old_k = layers.slice("cache.k", all_k), old_v = layers.slice("cache.v", all_v);
  const AdapterSlices adapters = adapter_slices(graph, layers, cache.adapters);
  DecoderBlock block = DecoderBlock::of(layers, only_group(), w, parameters_, std::nullopt)[0];
  const Value pages = layers.share("table", in.table), first = layers.share("start", in.start);
  const std::optional<Value> at = share_positions(layers, positions);
  if (!adapters.empty()) {
    const Value which = layers.share("adapter", graph.input("adapter", per_row(type.size(0))));
    block.adapt_by([&adapters, which](const std::string& projection, Value of, Value y) {
      const auto found = adapters.find(projection);
      return found == adapters.end() ? y : adapted(of, y, found->second, which);
    });
  }
  std::optional<Value> new_k, new_v;
  const auto attend = [&](Value q, Value k, Value v) {
    new_k = page_write(old_k, cast(k, cache.dtype), pages, first);
    new_v = page_write(old_v, cast(v, cache.dtype), pages, first);
    return paged_attention(q, *new_k, *new_v, pages, first, config_.window);
  };
  layers.body().output("x", block(x, {place(at), attend}, {.serving = true}).x);
  layers.body().output("k", *new_k);
  layers.body().output("v", *new_v);
  const Repeat run = layers.run(unrolled_);
  graph.output("cache.k", run.outputs[0]);
  graph.output("cache.v", run.outputs[1]);
  return run.carries[0];
}

Graph Decoder::step(std::int64_t batch, std::int64_t tokens, const PagedCache& cache) const {
  Graph graph("step");
  const Parameters w(graph, parameters_);
  const StepInputs in = step_inputs(graph, batch, tokens, cache);
  std::optional<Value> last;
  if (tokens > 1) last = graph.input("last", per_row(batch));
  const Value x = cached_trunk(graph, w, in, cache);
  const Type one(DType::f32, {batch, config_.width}, {"batch", "embed"});
  const Value ended = last ? take_row(x, *last) : reshape(x, one);
  graph.output("logits", head(w, ended, "be,ve->bv"));
  return graph;
}

Graph Decoder::score(std::int64_t tokens, const PagedCache& cache) const {
  Graph graph("score");
  const Parameters w(graph, parameters_);
  const StepInputs in = step_inputs(graph, 1, tokens, cache);
  const Value labels = graph.input("labels", ids(1, tokens));
  const Value x = cached_trunk(graph, w, in, cache);
  graph.output("loss", cross_entropy(head(w, x, "bse,ve->bsv"), labels).loss);
  return graph;
}

}  // namespace

std::unique_ptr<const Model> make_decoder(const DecoderSpec& config, bool unrolled) {
  return std::make_unique<const Decoder>(checked(config), unrolled);
}

}  // namespace systole

#include "describe/models/t5/t5.h"

#include <array>
#include <cmath>

#include "describe/models/sizes.h"
#include "describe/models/t5/block.h"

namespace systole {
namespace {

// Dropout sites: 0 and 1 are the embeddings'; then two per encoder layer, three per decoder layer.
constexpr std::int64_t kEncoderSites = 2, kDecoderSites = 3;

Type ids(std::int64_t rows, std::int64_t sequence_length, const char* dim) {
  return Type(DType::i32, {rows, sequence_length}, {"batch", dim});
}
Type per_row(std::int64_t rows) { return Type(DType::i32, {rows}, {"batch"}); }

// 1 for the tokens of a row's prompt of this length, 0 after them.
Value segments_of(Value tokens, Value length) {
  const Value places = iota(*tokens.graph, tokens.type(), 1);
  const Value real = compare(places, broadcast(length, tokens.type(), std::vector<int>{0}), "lt");
  return select(real, full_like(tokens, 1), full_like(tokens, 0));
}

// The lengths of all slots, with that of one slot replaced.
Value with_length(Value lengths, Value length, Value slot) {
  const Type row(DType::i32, {1, lengths.type().size(0)}, {"", "batch"});
  return reshape(cache_write(reshape(lengths, row), reshape(length, Type(DType::i32, {1, 1})), slot), lengths.type());
}

class T5 final : public Model {
 public:
  T5(const T5Spec& config, bool unrolled) : Model(config, t5_parameters(config)), unrolled_(unrolled) {}

  Graph loss(const BatchShape& shape, bool training) const override;
  Graph forward(const BatchShape& shape) const override;
  Graph prefill(std::int64_t slots, std::int64_t bucket, std::int64_t cache) const override;
  Graph decode(std::int64_t slots, std::int64_t cache) const override;

 private:
  struct Rows {
    Value tokens, segments;
  };
  StackDropout dropout(const std::optional<DropoutKey>& key, bool decoder) const;
  Value embed(const Parameters& w, Value tokens, const std::optional<DropoutKey>& key, int site) const;
  // The encoder's output, after its final norm.
  Value encode(const Parameters& w, const Rows& rows, const std::optional<DropoutKey>& key) const;
  // The decoder's output over the encoder's output, before its final norm.
  Value decode_rows(const Parameters& w, const Rows& rows, Value encoded, Value encoded_segments,
                    const std::optional<DropoutKey>& key) const;
  Value trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training,
              std::optional<Value>* labels) const;
  Value head(const Parameters& w, Value x, const std::string& spec) const;
  AttentionOptions self_options(bool causal, Value bias) const;

  // Caches of the decoder for every slot: its own keys and values, and those of the prompt. For all layers
  // [layer, slots, target or cache, heads, head], or for one layer without the first dim.
  struct Caches {
    Value k, v, prompt_k, prompt_v;
  };
  Caches cache_inputs(Graph& graph, std::int64_t slots, std::int64_t cache) const;
  static Caches slices_of(Layers& layers, const Caches& outer);
  // Cross-attention of one decoder token over a prompt of this length, i32[batch].
  static AttentionOptions across_prompt(Layers& layers, Value length);
  // Closes the body and declares the caches as outputs. `next`: the changed caches of one layer, in the order of
  // Caches. Returns the residual stream after all layers.
  Value run_with_caches(Layers& layers, Graph& graph, Value x, std::span<const Value> next) const;
  Value token_logits(const Parameters& w, Value x) const;

  const T5Spec& config_ = spec_.as<T5Spec>();
  bool unrolled_;
};

StackDropout T5::dropout(const std::optional<DropoutKey>& key, bool decoder) const {
  if (decoder) return {key, config_.dropout, 2 + kEncoderSites * config_.layers, kDecoderSites};
  return {key, config_.dropout, 2, kEncoderSites};
}

Value T5::embed(const Parameters& w, Value tokens, const std::optional<DropoutKey>& key, int site) const {
  const Value x = embedding(w["embed.tokens"], tokens);
  return key ? drop_at(x, *key, constant(*x.graph, Type(DType::i64, {}), site), config_.dropout) : x;
}

AttentionOptions T5::self_options(bool causal, Value bias) const {
  AttentionOptions options{.causal = causal, .scale = 1};
  options.bias_by_distance = bias;
  options.bias_origin = config_.relative_furthest;
  return options;
}

Value T5::encode(const Parameters& w, const Rows& rows, const std::optional<DropoutKey>& key) const {
  const Value bias = bias_by_distance(w["encoder.relative_bias"], encoder_positions(config_));
  Layers layers("encoder", config_.layers);
  const Value x = layers.carry("x", embed(w, rows.tokens, key, 0));
  const Stack stack(layers, w, parameters_, "encoder.blocks.", dropout(key, false));
  const Value seen = layers.share("segments", rows.segments);
  AttentionOptions options = self_options(false, layers.share("bias", bias));
  options.q_segments = options.k_segments = seen;
  const T5Block block(config_, stack);
  const Value mid = block.self(x, [&](Value q, Value k, Value v) { return attention(q, k, v, options).o; });
  layers.body().output("x", block.feed_forward(mid, "norm2", 1));
  const Value all = layers.run(unrolled_).carries[0];
  return rms_norm(all, w["encoder.norm.scale"], config_.eps).y.named("encoded");
}

Value T5::decode_rows(const Parameters& w, const Rows& rows, Value encoded, Value encoded_segments,
                      const std::optional<DropoutKey>& key) const {
  const Value bias = bias_by_distance(w["decoder.relative_bias"], decoder_positions(config_));
  Layers layers("decoder", config_.decoder_layers);
  const Value x = layers.carry("x", embed(w, rows.tokens, key, 1));
  const Stack stack(layers, w, parameters_, "decoder.blocks.", dropout(key, true));
  const Value seen = layers.share("segments", rows.segments), source = layers.share("encoded", encoded);
  const Value source_segments = layers.share("encoded_segments", encoded_segments);
  AttentionOptions options = self_options(true, layers.share("bias", bias));
  options.q_segments = options.k_segments = seen;
  const T5Block block(config_, stack);
  const Value own = block.self(x, [&](Value q, Value k, Value v) { return attention(q, k, v, options).o; });
  const auto [keys, values] = block.keys_and_values(source);
  const AttentionOptions across{.causal = false, .scale = 1, .q_segments = seen, .k_segments = source_segments};
  const Value mid = block.cross(own, [&, k = keys, v = values](Value q) { return attention(q, k, v, across).o; });
  layers.body().output("x", block.feed_forward(mid, "norm3", 2));
  return layers.run(unrolled_).carries[0];
}

Value T5::head(const Parameters& w, Value x, const std::string& spec) const {
  Value n = rms_norm(x, w["decoder.norm.scale"], config_.eps).y.named("head.norm");
  if (config_.tied) n = scale(n, 1 / std::sqrt(static_cast<double>(config_.width)));
  return contract(n, w[config_.tied ? "embed.tokens" : "head"], spec).named("logits");
}

Value T5::trunk(Graph& graph, const Parameters& w, const BatchShape& shape, bool training,
                std::optional<Value>* labels) const {
  const std::int64_t target = shape.target == 0 ? config_.target_context : shape.target;
  const std::int64_t sequence_length = shape.sequence_length == 0 ? config_.context : shape.sequence_length;
  require_length("rows", sequence_length, config_.context, "context");
  require_length("rows of targets", target, config_.target_context, "target_context");
  const Type source = ids(shape.rows, sequence_length, "seq"), targets = ids(shape.rows, target, "target");
  const Value tokens = graph.input("tokens", source), segments = graph.input("segments", source);
  const Value inputs = graph.input("target_tokens", targets);
  if (labels != nullptr) *labels = graph.input("labels", targets);
  const Value target_segments = graph.input("target_segments", targets);
  std::optional<DropoutKey> key;
  if (training && config_.dropout > 0) key = dropout_inputs(graph);
  const Value encoded = encode(w, {tokens, segments}, key);
  return decode_rows(w, {inputs, target_segments}, encoded, segments, key);
}

Graph T5::loss(const BatchShape& shape, bool training) const {
  Graph graph("loss");
  const Parameters w(graph, parameters_);
  std::optional<Value> labels;
  const Value x = trunk(graph, w, shape, training, &labels);
  graph.output("loss", sum_all(cross_entropy(head(w, x, "bse,ve->bsv"), *labels).loss));
  return graph;
}

Graph T5::forward(const BatchShape& shape) const {
  Graph graph("forward");
  const Parameters w(graph, parameters_);
  graph.output("logits", head(w, trunk(graph, w, shape, false, nullptr), "bse,ve->bsv"));
  return graph;
}

// Encodes the prompt of one slot and computes the first token of its answer. Within a layer the caches of all slots are
// contiguous, so slot s begins at row s × length.
Graph T5::prefill(std::int64_t slots, std::int64_t bucket, std::int64_t cache) const {
  require_length("a cache", cache, config_.context, "context");
  if (bucket < 1 || bucket > cache)
    fail(error(ErrorKind::invalid, "a bucket of {} positions for a cache of {}", bucket, cache));
  Graph graph("prefill");
  const Parameters w(graph, parameters_);
  const Value tokens = graph.input("tokens", ids(1, bucket, "seq")), length = graph.input("length", per_row(1)),
              slot = graph.input("slot", per_row(1));
  const Caches outer = cache_inputs(graph, slots, cache);
  const Value lengths = graph.input("cache.length", per_row(slots));
  const Value encoded = encode(w, {tokens, segments_of(tokens, length)}, std::nullopt);
  const Value start = constant(graph, ids(1, 1, "seq"), kT5Start);
  const Value next_lengths = with_length(lengths, length, slot);
  const Value bias = bias_by_distance(w["decoder.relative_bias"], decoder_positions(config_));
  Layers layers("decoder", config_.decoder_layers);
  const Value x = layers.carry("x", embed(w, start, std::nullopt, 1));
  const Caches old = slices_of(layers, outer);
  const Stack stack(layers, w, parameters_, "decoder.blocks.", {});
  const Value at = layers.share("at", slot);
  const AttentionOptions across = across_prompt(layers, length);
  const AttentionOptions options = self_options(true, layers.share("bias", bias));
  const T5Block block(config_, stack);
  const auto in_slot = [&](Value all, Value fresh) {
    const Type type = all.type();
    const Type flat(type.dtype, {1, slots * type.size(1), type.size(2), type.size(3)}, {"", "cache", "heads", "head"});
    const Value row = mul(at, full_like(at, static_cast<double>(type.size(1))));
    return reshape(cache_write(reshape(all, flat), fresh, row), type);
  };
  std::vector<Value> next;
  const Value own = block.self(x, [&](Value q, Value k, Value v) {
    next = {in_slot(old.k, k), in_slot(old.v, v)};
    return attention(q, k, v, options).o;
  });
  const KeysAndValues prompt = block.keys_and_values(layers.share("encoded", encoded));
  next.push_back(in_slot(old.prompt_k, prompt.k));
  next.push_back(in_slot(old.prompt_v, prompt.v));
  const Value mid = block.cross(own, [&](Value q) { return attention(q, prompt.k, prompt.v, across).o; });
  const Value last = run_with_caches(layers, graph, block.feed_forward(mid, "norm3", 2), next);
  graph.output("cache.length", next_lengths);
  graph.output("logits", token_logits(w, last));
  return graph;
}

// Computes the next token of every slot over the caches.
Graph T5::decode(std::int64_t slots, std::int64_t cache) const {
  require_length("a cache", cache, config_.context, "context");
  Graph graph("decode");
  const Parameters w(graph, parameters_);
  const Value tokens = graph.input("tokens", ids(slots, 1, "seq")), position = graph.input("position", per_row(slots));
  const Caches outer = cache_inputs(graph, slots, cache);
  const Value lengths = graph.input("cache.length", per_row(slots));
  const Value bias = bias_by_distance(w["decoder.relative_bias"], decoder_positions(config_));
  Layers layers("decoder", config_.decoder_layers);
  const Value x = layers.carry("x", embed(w, tokens, std::nullopt, 1));
  const Caches old = slices_of(layers, outer);
  const Stack stack(layers, w, parameters_, "decoder.blocks.", {});
  const Value at = layers.share("at", position);
  const AttentionOptions across = across_prompt(layers, lengths);
  AttentionOptions options = self_options(true, layers.share("bias", bias));
  options.offset = at;
  const T5Block block(config_, stack);
  std::vector<Value> next;
  const Value own = block.self(x, [&](Value q, Value k, Value v) {
    next = {cache_write(old.k, k, at), cache_write(old.v, v, at)};
    return attention(q, next[0], next[1], options).o;
  });
  const Value mid = block.cross(own, [&](Value q) { return attention(q, old.prompt_k, old.prompt_v, across).o; });
  const Value last = run_with_caches(layers, graph, block.feed_forward(mid, "norm3", 2), next);
  graph.output("logits", token_logits(w, last));
  return graph;
}

T5::Caches T5::cache_inputs(Graph& graph, std::int64_t slots, std::int64_t cache) const {
  const auto type = [&](std::int64_t length) {
    return Type(DType::f32, {config_.decoder_layers, slots, length, config_.heads, config_.head},
                {"layer", "batch", "cache", "heads", "head"});
  };
  const Value k = graph.input("cache.k", type(config_.target_context)),
              v = graph.input("cache.v", type(config_.target_context)),
              prompt_k = graph.input("cache.prompt_k", type(cache));
  return {k, v, prompt_k, graph.input("cache.prompt_v", type(cache))};
}

T5::Caches T5::slices_of(Layers& layers, const Caches& outer) {
  const Value k = layers.slice("cache.k", outer.k), v = layers.slice("cache.v", outer.v),
              prompt_k = layers.slice("cache.prompt_k", outer.prompt_k);
  return {k, v, prompt_k, layers.slice("cache.prompt_v", outer.prompt_v)};
}

AttentionOptions T5::across_prompt(Layers& layers, Value length) {
  const Value last = layers.share("last", sub(length, full_like(length, 1)));  // position of the prompt's last token
  return {.causal = true, .scale = 1, .offset = last};
}

Value T5::run_with_caches(Layers& layers, Graph& graph, Value x, std::span<const Value> next) const {
  const std::array<std::string, 4> names = {"k", "v", "prompt_k", "prompt_v"};
  layers.body().output("x", x);
  for (std::size_t i = 0; i < next.size(); ++i) layers.body().output(names[i], next[i]);
  const Repeat all = layers.run(unrolled_);
  for (std::size_t i = 0; i < next.size(); ++i) graph.output("cache." + names[i], all.outputs[i]);
  return all.carries[0];
}

Value T5::token_logits(const Parameters& w, Value x) const {
  return head(w, reshape(x, Type(DType::f32, {x.type().size(0), config_.width}, {"batch", "embed"})), "be,ve->bv");
}

}  // namespace

std::unique_ptr<const Model> make_t5(const T5Spec& config, bool unrolled) {
  return std::make_unique<const T5>(checked(config), unrolled);
}

}  // namespace systole

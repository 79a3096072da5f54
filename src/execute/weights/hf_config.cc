#include "execute/weights/hf_config.h"

#include "ground/base/document.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

// A config.json: reads entries, names them in messages, and collects the values found.
class Config {
 public:
  Config(const Node& root, std::string name) : root_(root), name_(std::move(name)) {}

  // The entry; null if absent or null.
  const Node* find(const char* entry) const {
    const Node* found = root_.find(entry);
    return found == nullptr || found->is_null() ? nullptr : found;
  }
  Result<const Node*> need(const char* entry) const {
    if (const Node* found = find(entry)) return found;
    return error(ErrorKind::corrupt, "this config.json has no {}", entry).at({name_});
  }

  Status fixed(const char* entry, const char* key) {
    const Node* found = TRY(need(entry));
    return give(key, std::to_string(TRY(found->as_int(1))), true);
  }
  // A number, as written in the file.
  Status number(const char* entry, const char* key, const char* otherwise) {
    const Node* found = find(entry);
    if (found != nullptr) TRY(found->as_double());
    return give(key, found == nullptr ? otherwise : found->text(), true);
  }
  Status give(const char* key, std::string yaml, bool fixed) {
    values.push_back({key, std::move(yaml), fixed});
    return {};
  }
  // Refuses any value but `wanted`.
  Status must(const char* entry, std::string_view wanted) const {
    const Node* found = find(entry);
    return found == nullptr || found->text() == wanted ? Status() : other(*found, entry, std::string(wanted));
  }
  Status one(const Node* found, const char* entry) const {
    return found == nullptr || found->is_null() || TRY(found->as_double()) == 1 ? Status() : other(*found, entry, "1");
  }
  Error other(const Node& found, const char* entry, const std::string& wanted) const {
    return error(ErrorKind::unsupported, "{} is {}, and only {} is followed here", entry, found.describe(), wanted)
        .at(found.where())
        .hinted("a model that was trained without it can be taken");
  }

  Status activation(const char* entry, const char* otherwise) {
    const Node* found = find(entry);
    return activation_named(found == nullptr ? otherwise : found->text(), found, entry);
  }
  Status activation_named(const std::string& theirs, const Node* found, const char* entry) {
    for (const auto& [name, ours] : {std::pair("gelu_new", "gelu_tanh"), std::pair("gelu_pytorch_tanh", "gelu_tanh"),
                                     std::pair("gelu_fast", "gelu_tanh"), std::pair("gelu", "gelu"),
                                     std::pair("relu", "relu"), std::pair("relu2", "relu2"), std::pair("silu", "silu"),
                                     std::pair("swish", "silu"), std::pair("tanh", "tanh")}) {
      if (theirs == name) return give("model.activation", ours, true);
    }
    return other(*found, entry, "gelu_new, gelu, relu, silu or tanh");
  }
  // "relu", or "gated-" and the name of an activation. "gated-gelu" is the tanh approximation, although "gelu" is the
  // exact function.
  Status feed_forward(const char* entry) {
    const Node* found = find(entry);
    const std::string theirs = found == nullptr ? "relu" : found->text();
    const bool gated = theirs.starts_with("gated-");
    TRY(give("model.gated", gated ? "true" : "false", true));
    const std::string name = theirs == "gated-gelu" ? "gelu_new" : gated ? theirs.substr(6) : theirs;
    return activation_named(name, found, entry);
  }

  Status tied(bool otherwise) { return tied("tie_word_embeddings", otherwise); }
  Status tied(const char* entry, bool otherwise) {
    const Node* found = find(entry);
    const bool is = found == nullptr ? otherwise : TRY(found->as_bool());
    return give("model.tied", is ? "true" : "false", true);
  }

  std::vector<ImportedValue> values;

 private:
  const Node& root_;
  std::string name_;
};

Status read_gpt2(Config& config) {
  TRY(config.give("model.family", "gpt", true));
  TRY(config.fixed("n_layer", "model.layers"));
  TRY(config.fixed("n_embd", "model.width"));
  TRY(config.fixed("n_head", "model.heads"));
  TRY(config.fixed("n_positions", "model.context"));
  TRY(config.fixed("vocab_size", "model.vocabulary"));
  if (config.find("n_inner") != nullptr) TRY(config.fixed("n_inner", "model.mlp"));
  TRY(config.number("layer_norm_epsilon", "model.eps", "1e-5"));
  TRY(config.activation("activation_function", "gelu_new"));
  TRY(config.must("scale_attn_weights", "true"));
  TRY(config.must("scale_attn_by_inverse_layer_idx", "false"));
  TRY(config.must("add_cross_attention", "false"));
  TRY(config.give("model.position", "learned", true));
  TRY(config.give("model.norm", "layer", true));
  TRY(config.give("model.bias", "true", true));
  TRY(config.give("model.gated", "false", true));
  return config.tied(true);
}

// rope_parameters (transformers 5) or rope_scaling, with rope_theta inside or beside it.
Status read_rope(Config& config) {
  const Node* both = config.find("rope_parameters");
  const Node* scaling = both != nullptr ? both : config.find("rope_scaling");
  if (scaling != nullptr && !scaling->is_map()) return scaling->wrong("a map");
  const Node* theta = scaling == nullptr ? nullptr : scaling->find("rope_theta");
  if (theta == nullptr) theta = config.find("rope_theta");
  const char* partial = "partial_rotary_factor";
  TRY(config.one(config.find(partial), partial));
  TRY(config.one(scaling == nullptr ? nullptr : scaling->find(partial), partial));
  if (theta != nullptr) TRY(theta->as_double());
  TRY(config.give("model.theta", theta == nullptr ? "10000" : theta->text(), true));
  const Node* kind = scaling == nullptr ? nullptr : scaling->find("rope_type");
  if (scaling != nullptr && kind == nullptr) kind = scaling->find("type");
  if (kind == nullptr || kind->text() == "default") return config.give("model.rope_scaling.kind", "none", true);
  if (kind->text() != "llama3") return config.other(*kind, "rope_type", "default or llama3");
  TRY(config.give("model.rope_scaling.kind", "llama3", true));
  for (const auto& [entry, key] :
       {std::pair("factor", "model.rope_scaling.factor"),
        std::pair("low_freq_factor", "model.rope_scaling.low_freq_factor"),
        std::pair("high_freq_factor", "model.rope_scaling.high_freq_factor"),
        std::pair("original_max_position_embeddings", "model.rope_scaling.original_context")}) {
    const Node* found = TRY(scaling->get(entry));
    TRY(found->as_double());
    TRY(config.give(key, found->text(), true));
  }
  return {};
}

// Llama; Mistral, if each position sees all before it; Qwen3, which norms the heads of q and k and has 128 numbers in one
// where its config says nothing.
Status read_llama(Config& config, const std::string& type) {
  TRY(config.give("model.family", "llama", true));
  TRY(config.fixed("num_hidden_layers", "model.layers"));
  TRY(config.fixed("hidden_size", "model.width"));
  TRY(config.fixed("num_attention_heads", "model.heads"));
  const char* kv = config.find("num_key_value_heads") != nullptr ? "num_key_value_heads" : "num_attention_heads";
  TRY(config.fixed(kv, "model.kv_heads"));
  if (config.find("head_dim") != nullptr) {
    TRY(config.fixed("head_dim", "model.head"));
  } else if (type == "qwen3") {
    TRY(config.give("model.head", "128", true));
  }
  if (type == "qwen3") {
    TRY(config.give("model.qk_norm", "true", true));
    TRY(config.must("use_sliding_window", "false"));
  }
  TRY(config.fixed("intermediate_size", "model.mlp"));
  TRY(config.fixed("vocab_size", "model.vocabulary"));
  const Node* context = TRY(config.need("max_position_embeddings"));
  TRY(config.give("model.context", std::to_string(TRY(context->as_int(1))), false));  // rows may be shorter
  if (const Node* window = config.find("sliding_window"); window != nullptr && type == "mistral") {
    if (TRY(window->as_int(1)) < TRY(context->as_int(1))) return config.other(*window, "sliding_window", "null");
  }
  TRY(config.number("rms_norm_eps", "model.eps", "1e-6"));
  TRY(config.activation("hidden_act", "silu"));
  TRY(config.must("attention_bias", "false"));
  TRY(config.must("mlp_bias", "false"));
  TRY(config.give("model.position", "rotary", true));
  TRY(config.give("model.norm", "rms", true));
  TRY(config.give("model.bias", "false", true));
  TRY(config.give("model.gated", "true", true));
  TRY(read_rope(config));
  return config.tied(false);
}

// Transformers 5 writes tie_word_embeddings: true for every T5. scale_decoder_outputs says whether the head is scaled,
// as a tied head is.
Status read_t5(Config& config) {
  TRY(config.give("model.family", "t5", true));
  TRY(config.fixed("num_layers", "model.layers"));
  const bool both = config.find("num_decoder_layers") != nullptr;
  TRY(config.fixed(both ? "num_decoder_layers" : "num_layers", "model.decoder_layers"));
  TRY(config.fixed("d_model", "model.width"));
  TRY(config.fixed("num_heads", "model.heads"));
  TRY(config.fixed("d_kv", "model.head"));
  TRY(config.fixed("d_ff", "model.mlp"));
  TRY(config.fixed("vocab_size", "model.vocabulary"));
  TRY(config.number("relative_attention_num_buckets", "model.relative.buckets", "32"));
  TRY(config.number("relative_attention_max_distance", "model.relative.furthest", "128"));
  TRY(config.number("layer_norm_epsilon", "model.eps", "1e-6"));
  TRY(config.feed_forward("feed_forward_proj"));
  TRY(config.must("is_encoder_decoder", "true"));
  TRY(config.must("decoder_start_token_id", "0"));
  TRY(config.give("model.context", "512", false));  // its training length; relative positions have no limit
  TRY(config.give("model.target_context", "512", false));
  const bool scaled = config.find("scale_decoder_outputs") != nullptr;
  return config.tied(scaled ? "scale_decoder_outputs" : "tie_word_embeddings", true);
}

const char* activation_name(Activation activation) {
  using A = Activation;
  switch (activation) {
    case A::gelu: return "gelu";
    case A::gelu_tanh: return "gelu_new";
    case A::relu: return "relu";
    case A::relu2: return "relu2";
    case A::silu: return "silu";
    case A::tanh: return "tanh";
    case A::sigmoid: return "sigmoid";
  }
  CHECK(false, "no such activation");
}

Node gpt2_config(const DecoderSpec& m) {
  return Node::map({{"activation_function", activation_name(m.activation)},
                    {"architectures", Node::sequence({"GPT2LMHeadModel"})},
                    {"layer_norm_epsilon", m.eps},
                    {"model_type", "gpt2"},
                    {"n_embd", m.width},
                    {"n_head", m.heads},
                    {"n_inner", m.mlp},
                    {"n_layer", m.layers},
                    {"n_positions", m.context}});
}

Node llama_config(const DecoderSpec& m) {
  Node rope = Node::map({{"rope_theta", m.theta}, {"rope_type", "default"}});
  if (const auto& r = m.rope_scaling; r.kind == RopeScaling::Kind::llama3) {
    rope = Node::map({{"factor", r.factor},
                      {"high_freq_factor", r.high_freq_factor},
                      {"low_freq_factor", r.low_freq_factor},
                      {"original_max_position_embeddings", r.original_context},
                      {"rope_theta", m.theta},
                      {"rope_type", "llama3"}});
  }
  return Node::map({{"architectures", Node::sequence({m.qk_norm ? "Qwen3ForCausalLM" : "LlamaForCausalLM"})},
                    {"attention_bias", false},
                    {"head_dim", m.head},
                    {"hidden_act", activation_name(m.activation)},
                    {"hidden_size", m.width},
                    {"intermediate_size", m.mlp},
                    {"max_position_embeddings", m.context},
                    {"mlp_bias", false},
                    {"model_type", m.qk_norm ? "qwen3" : "llama"},
                    {"num_attention_heads", m.heads},
                    {"num_hidden_layers", m.layers},
                    {"num_key_value_heads", m.kv_heads},
                    {"rms_norm_eps", m.eps},
                    {"rope_parameters", std::move(rope)}});
}

Node t5_config(const T5Spec& m, std::optional<std::int64_t> eos) {
  const std::string activation =
      m.activation == Activation::gelu_tanh && m.gated ? "gelu" : activation_name(m.activation);
  Node config = Node::map({{"architectures", Node::sequence({"T5ForConditionalGeneration"})},
                           {"d_ff", m.mlp},
                           {"d_kv", m.head},
                           {"d_model", m.width},
                           {"decoder_start_token_id", 0},
                           {"feed_forward_proj", (m.gated ? "gated-" : "") + activation},
                           {"is_encoder_decoder", true},
                           {"layer_norm_epsilon", m.eps},
                           {"model_type", "t5"},
                           {"num_decoder_layers", m.decoder_layers},
                           {"num_heads", m.heads},
                           {"num_layers", m.layers},
                           {"pad_token_id", 0},
                           {"relative_attention_max_distance", m.relative_furthest},
                           {"relative_attention_num_buckets", m.relative_buckets}});
  if (eos) config.set("eos_token_id", *eos);
  return config;
}

// Adds the entries that all families share.
template <typename Spec>
std::string finished(Node config, const Spec& m) {
  config.set("tie_word_embeddings", m.tied);
  config.set("vocab_size", m.vocabulary);
  return to_json(config, 2) + "\n";
}

}  // namespace

Result<std::vector<ImportedValue>> values_of_config(std::string_view json, const std::string& name) {
  const auto parsed = parse_json(json, name);
  if (!parsed.ok()) {
    Error bad = parsed.error();
    bad.kind = ErrorKind::corrupt;
    return bad;
  }
  Config config(*parsed, name);
  const std::string type = TRY(TRY(config.need("model_type"))->as_string());
  const bool llama = type == "llama" || type == "mistral" || type == "qwen3";
  if (type != "gpt2" && !llama && type != "t5") {
    return error(ErrorKind::unsupported, "a model of type '{}' cannot be taken", type)
        .at({name})
        .hinted(type == "bert" ? "`systole embed` and `systole serve` read it, for vectors of texts"
                               : "gpt2, llama, mistral, qwen3 and t5 can");
  }
  Status read = llama ? read_llama(config, type) : type == "gpt2" ? read_gpt2(config) : read_t5(config);
  if (!read.ok()) {
    Error bad = std::move(read).error();
    if (bad.kind == ErrorKind::invalid || bad.kind == ErrorKind::not_found) bad.kind = ErrorKind::corrupt;
    return bad;
  }
  return std::move(config.values);
}

bool head_may_be_embedding(std::string_view json) {
  const auto parsed = parse_json(json, "config.json");
  if (!parsed.ok()) return false;
  const auto says = [&](const char* entry, std::string_view value) {
    const Node* found = parsed->find(entry);
    return found != nullptr && found->text() == value;
  };
  return says("model_type", "t5") && says("tie_word_embeddings", "true") && says("scale_decoder_outputs", "false");
}

std::string config_of(const ModelSpec& model, std::optional<std::int64_t> eos) {
  if (const auto* t5 = model.if_is<T5Spec>()) return finished(t5_config(*t5, eos), *t5);
  const auto& decoder = model.as<DecoderSpec>();
  return finished(decoder.family == DecoderSpec::Family::llama ? llama_config(decoder) : gpt2_config(decoder), decoder);
}

}  // namespace systole

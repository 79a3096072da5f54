#include "execute/weights/name_map.h"

#include <algorithm>

namespace systole {
namespace {

// Refuses a model that the family's transformers code cannot express.
class Only {
 public:
  explicit Only(const char* family) : family_(family) {}
  Only& holds(bool good, const char* key, const char* must) {
    if (!good && wrong_.ok()) {
      wrong_ = error(ErrorKind::unsupported, "Hugging Face's {} has no such model: {} is not {}", family_, key, must)
                   .hinted(fmt::format("{}: {}", key, must));
    }
    return *this;
  }
  Status finish() const { return wrong_; }

 private:
  const char* family_;
  Status wrong_;
};

class Lister {
 public:
  explicit Lister(NameMap& map) : map_(map) {}

  void same(const std::string& theirs, Shape shape, const std::string& ours) {
    const std::int64_t columns = shape.back();
    map_.tensors.push_back({map_.prefix + theirs, std::move(shape), ours, columns, 0, false});
  }
  void turned(const std::string& theirs, std::int64_t out, std::int64_t in, const std::string& ours) {
    map_.tensors.push_back({map_.prefix + theirs, {out, in}, ours, in, 0, true});
  }
  // Several of our tensors, side by side in one HF tensor.
  void fused(const std::string& theirs, const Shape& shape, const std::vector<std::string>& ours) {
    const std::int64_t columns = shape.back() / static_cast<std::int64_t>(ours.size());
    std::int64_t first = 0;
    for (const std::string& one : ours) {
      map_.tensors.push_back({map_.prefix + theirs, shape, one, columns, first, false});
      first += columns;
    }
  }

 private:
  NameMap& map_;
};

Result<NameMap> gpt2_map(const DecoderSpec& m) {
  TRY(Only("GPT-2")
          .holds(m.position == Position::learned, "model.position", "learned")
          .holds(m.norm == Norm::layer, "model.norm", "layer")
          .holds(m.bias, "model.bias", "true")
          .holds(!m.gated, "model.gated", "false")
          .holds(m.kv_heads == m.heads, "model.kv_heads", "model.heads")
          .holds(m.heads * m.head == m.width, "model.head", "width / heads")
          .holds(!m.parallel_blocks, "model.parallel_blocks", "false")
          .holds(m.window == 0, "model.window", "0")
          .holds(m.moe.experts == 0, "model.moe.experts", "0")
          .holds(!m.qk_norm, "model.qk_norm", "false")
          .finish());
  NameMap map;
  map.prefix = "transformer.";
  map.transposed = true;
  map.empty = {".attn.bias", ".attn.masked_bias"};
  Lister list(map);
  const std::int64_t e = m.width;
  list.same("wte.weight", {m.vocabulary, e}, "embed.tokens");
  list.same("wpe.weight", {m.context, e}, "embed.positions");
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const std::string h = fmt::format("h.{}.", layer), ours = fmt::format("blocks.{}.", layer);
    list.same(h + "ln_1.weight", {e}, ours + "norm1.scale");
    list.same(h + "ln_1.bias", {e}, ours + "norm1.bias");
    list.fused(h + "attn.c_attn.weight", {e, 3 * e}, {ours + "attn.q", ours + "attn.k", ours + "attn.v"});
    list.fused(h + "attn.c_attn.bias", {3 * e}, {ours + "attn.q_bias", ours + "attn.k_bias", ours + "attn.v_bias"});
    list.same(h + "attn.c_proj.weight", {e, e}, ours + "attn.o");
    list.same(h + "attn.c_proj.bias", {e}, ours + "attn.o_bias");
    list.same(h + "ln_2.weight", {e}, ours + "norm2.scale");
    list.same(h + "ln_2.bias", {e}, ours + "norm2.bias");
    list.same(h + "mlp.c_fc.weight", {e, m.mlp}, ours + "mlp.up");
    list.same(h + "mlp.c_fc.bias", {m.mlp}, ours + "mlp.up_bias");
    list.same(h + "mlp.c_proj.weight", {m.mlp, e}, ours + "mlp.down");
    list.same(h + "mlp.c_proj.bias", {e}, ours + "mlp.down_bias");
  }
  list.same("ln_f.weight", {e}, "norm.scale");
  list.same("ln_f.bias", {e}, "norm.bias");
  return map;
}

Result<NameMap> llama_map(const DecoderSpec& m) {
  TRY(Only("Llama")
          .holds(m.position == Position::rotary, "model.position", "rotary")
          .holds(m.norm == Norm::rms, "model.norm", "rms")
          .holds(!m.bias, "model.bias", "false")
          .holds(m.gated, "model.gated", "true")
          .holds(!m.parallel_blocks, "model.parallel_blocks", "false")
          .holds(m.window == 0, "model.window", "0")
          .holds(m.moe.experts == 0, "model.moe.experts", "0")
          .finish());
  NameMap map;
  map.prefix = "model.";
  map.empty = {".rotary_emb.inv_freq"};
  Lister list(map);
  const std::int64_t e = m.width, q = m.heads * m.head, kv = m.kv_heads * m.head;
  list.same("embed_tokens.weight", {m.vocabulary, e}, "embed.tokens");
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const std::string l = fmt::format("layers.{}.", layer), ours = fmt::format("blocks.{}.", layer);
    list.same(l + "input_layernorm.weight", {e}, ours + "norm1.scale");
    list.turned(l + "self_attn.q_proj.weight", q, e, ours + "attn.q");
    list.turned(l + "self_attn.k_proj.weight", kv, e, ours + "attn.k");
    list.turned(l + "self_attn.v_proj.weight", kv, e, ours + "attn.v");
    list.turned(l + "self_attn.o_proj.weight", e, q, ours + "attn.o");
    if (m.qk_norm) {  // Qwen3
      list.same(l + "self_attn.q_norm.weight", {m.head}, ours + "attn.q_norm.scale");
      list.same(l + "self_attn.k_norm.weight", {m.head}, ours + "attn.k_norm.scale");
    }
    list.same(l + "post_attention_layernorm.weight", {e}, ours + "norm2.scale");
    list.turned(l + "mlp.gate_proj.weight", m.mlp, e, ours + "mlp.gate");
    list.turned(l + "mlp.up_proj.weight", m.mlp, e, ours + "mlp.up");
    list.turned(l + "mlp.down_proj.weight", e, m.mlp, ours + "mlp.down");
  }
  list.same("norm.weight", {e}, "norm.scale");
  return map;
}

void list_t5_attention(Lister& list, const std::string& theirs, const std::string& ours, const T5Spec& m) {
  const std::int64_t inner = m.heads * m.head;
  list.turned(theirs + ".q.weight", inner, m.width, ours + ".q");
  list.turned(theirs + ".k.weight", inner, m.width, ours + ".k");
  list.turned(theirs + ".v.weight", inner, m.width, ours + ".v");
  list.turned(theirs + ".o.weight", m.width, inner, ours + ".o");
}

void list_t5_stack(Lister& list, const std::string& stack, std::int64_t layers, const T5Spec& m) {
  const bool decoder = stack == "decoder";
  const std::int64_t e = m.width;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string block = fmt::format("{}.block.{}.layer.", stack, layer);
    const std::string ours = fmt::format("{}.blocks.{}.", stack, layer);
    list_t5_attention(list, block + "0.SelfAttention", ours + "attn", m);
    if (layer == 0) {
      list.same(block + "0.SelfAttention.relative_attention_bias.weight", {m.relative_buckets, m.heads},
                stack + ".relative_bias");
    }
    list.same(block + "0.layer_norm.weight", {e}, ours + "norm1.scale");
    if (decoder) {
      list_t5_attention(list, block + "1.EncDecAttention", ours + "cross", m);
      list.same(block + "1.layer_norm.weight", {e}, ours + "norm2.scale");
    }
    const std::string last = block + (decoder ? "2." : "1.");
    if (m.gated) list.turned(last + "DenseReluDense.wi_0.weight", m.mlp, e, ours + "mlp.gate");
    list.turned(last + (m.gated ? "DenseReluDense.wi_1.weight" : "DenseReluDense.wi.weight"), m.mlp, e,
                ours + "mlp.up");
    list.turned(last + "DenseReluDense.wo.weight", e, m.mlp, ours + "mlp.down");
    list.same(last + "layer_norm.weight", {e}, ours + (decoder ? "norm3.scale" : "norm2.scale"));
  }
  list.same(stack + ".final_layer_norm.weight", {e}, stack + ".norm.scale");
}

Result<NameMap> t5_map(const T5Spec& m) {
  TRY(Only("T5")
          .holds(!m.gated || m.activation != Activation::gelu, "model.activation", "gelu_tanh where gated")
          .finish());
  NameMap map;
  // Cross-attention has no position bias. The first conversions wrote a table anyway; no code reads it.
  map.empty = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};
  map.copies = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  Lister list(map);
  list.same("shared.weight", {m.vocabulary, m.width}, "embed.tokens");
  list_t5_stack(list, "encoder", m.layers, m);
  list_t5_stack(list, "decoder", m.decoder_layers, m);
  return map;
}

Result<NameMap> family_map(const DecoderSpec& m) {
  return m.family == DecoderSpec::Family::gpt ? gpt2_map(m) : llama_map(m);
}
Result<NameMap> family_map(const T5Spec& m) { return t5_map(m); }

template <typename Spec>
Result<NameMap> with_head(const Spec& model) {
  NameMap map = TRY(family_map(model));
  map.embedding = map.tensors.front().theirs;
  if (model.tied) {
    map.copies.emplace_back(kHead);
  } else {
    map.tensors.push_back({kHead, {model.vocabulary, model.width}, "head", model.width, 0, false});
  }
  return map;
}

}  // namespace

Result<NameMap> name_map(const ModelSpec& model) {
  if (const auto* decoder = model.if_is<DecoderSpec>()) return with_head(*decoder);
  if (const auto* t5 = model.if_is<T5Spec>()) return with_head(*t5);
  return error(ErrorKind::unsupported, "weights of this model.family cannot be exchanged")
      .hinted("those of the families gpt, llama and t5 can");
}

bool NameMap::has_head() const {
  return std::ranges::any_of(tensors, [](const MappedTensor& t) { return t.theirs == kHead; });
}

NameMap without_prefix(NameMap map) {
  for (MappedTensor& tensor : map.tensors) {
    if (tensor.theirs.starts_with(map.prefix)) tensor.theirs.erase(0, map.prefix.size());
  }
  if (map.embedding.starts_with(map.prefix)) map.embedding.erase(0, map.prefix.size());
  map.prefix.clear();
  return map;
}

NameMap with_head_of_embedding(NameMap map) {
  const auto head =
      std::find_if(map.tensors.begin(), map.tensors.end(), [](const MappedTensor& t) { return t.theirs == kHead; });
  CHECK(head != map.tensors.end() && map.tensors.front().theirs == map.embedding, "no head beside '{}'", map.embedding);
  MappedTensor copy = std::move(*head);
  map.tensors.erase(head);
  copy.theirs = map.embedding;
  map.tensors.insert(map.tensors.begin() + 1, std::move(copy));  // entries of one tensor are adjacent
  return map;
}

}  // namespace systole

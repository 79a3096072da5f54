#include "execute/weights/bert_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "ground/base/document.h"
#include "ground/base/errors.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

// The first conversions from TensorFlow called the scale and the bias of a norm so.
constexpr const char* kOldNorm = "embeddings.LayerNorm.gamma";
constexpr std::int64_t kMostLayers = 10'000;  // as model.layers

Result<std::int64_t> size_at(const Node& config, const char* entry, std::int64_t highest = INT32_MAX) {
  const Node* found = config.find(entry);
  if (found == nullptr) return error(ErrorKind::corrupt, "this config.json has no {}", entry);
  return found->as_int(1, highest);
}

// Refuses any value but `wanted`, where there is one.
Status must(const Node& config, const char* entry, std::string_view wanted) {
  const Node* found = config.find(entry);
  if (found == nullptr || found->is_null() || found->text() == wanted) return {};
  return error(ErrorKind::unsupported, "{} is {}, and only {} is followed here", entry, found->describe(), wanted)
      .hinted("a model that was trained without it can be taken");
}

Result<Activation> activation_of(const Node& config) {
  const Node* found = config.find("hidden_act");
  const std::string name = found == nullptr ? "gelu" : found->text();
  for (const auto& [theirs, ours] :
       {std::pair("gelu", Activation::gelu), std::pair("gelu_new", Activation::gelu_tanh),
        std::pair("gelu_pytorch_tanh", Activation::gelu_tanh), std::pair("relu", Activation::relu),
        std::pair("silu", Activation::silu), std::pair("swish", Activation::silu)}) {
    if (name == theirs) return ours;
  }
  return error(ErrorKind::unsupported, "hidden_act is '{}'", name).hinted("gelu, gelu_new, relu and silu are followed");
}

Result<BertSpec> spec_of(const Node& config) {
  BertSpec spec;
  spec.layers = TRY(size_at(config, "num_hidden_layers", kMostLayers));
  spec.width = TRY(size_at(config, "hidden_size"));
  spec.heads = TRY(size_at(config, "num_attention_heads"));
  spec.mlp = TRY(size_at(config, "intermediate_size"));
  spec.context = TRY(size_at(config, "max_position_embeddings"));
  spec.vocabulary = TRY(size_at(config, "vocab_size"));
  spec.types = TRY(size_at(config, "type_vocab_size"));
  if (const Node* eps = config.find("layer_norm_eps")) spec.eps = TRY(eps->as_double());
  spec.activation = TRY(activation_of(config));
  TRY(must(config, "position_embedding_type", "absolute"));
  TRY(must(config, "is_decoder", "false"));
  TRY(must(config, "add_cross_attention", "false"));
  if (spec.width % spec.heads != 0)
    return error(ErrorKind::corrupt, "{} heads do not divide the width {}", spec.heads, spec.width);
  return spec;
}

NameMap names_of(const BertSpec& m, const std::string& prefix, bool old_norms) {
  NameMap map;
  map.prefix = prefix;
  const std::int64_t e = m.width;
  const auto same = [&](const std::string& theirs, Shape shape, const std::string& ours) {
    const std::int64_t columns = shape.back();
    map.tensors.push_back({prefix + theirs, std::move(shape), ours, columns, 0, false});
  };
  const auto linear = [&](const std::string& theirs, std::int64_t out, std::int64_t in, const std::string& ours) {
    map.tensors.push_back({prefix + theirs + ".weight", {out, in}, ours, in, 0, true});
    same(theirs + ".bias", {out}, ours + "_bias");
  };
  const auto norm = [&](const std::string& theirs, const std::string& ours) {
    same(theirs + (old_norms ? ".gamma" : ".weight"), {e}, ours + ".scale");
    same(theirs + (old_norms ? ".beta" : ".bias"), {e}, ours + ".bias");
  };
  same("embeddings.word_embeddings.weight", {m.vocabulary, e}, "embed.tokens");
  same("embeddings.position_embeddings.weight", {m.context, e}, "embed.positions");
  same("embeddings.token_type_embeddings.weight", {m.types, e}, "embed.types");
  norm("embeddings.LayerNorm", "embed.norm");
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const std::string l = fmt::format("encoder.layer.{}.", layer), ours = fmt::format("blocks.{}.", layer);
    linear(l + "attention.self.query", e, e, ours + "attn.q");
    linear(l + "attention.self.key", e, e, ours + "attn.k");
    linear(l + "attention.self.value", e, e, ours + "attn.v");
    linear(l + "attention.output.dense", e, e, ours + "attn.o");
    norm(l + "attention.output.LayerNorm", ours + "norm1");
    linear(l + "intermediate.dense", m.mlp, e, ours + "mlp.up");
    linear(l + "output.dense", e, m.mlp, ours + "mlp.down");
    norm(l + "output.LayerNorm", ours + "norm2");
  }
  map.embedding = map.tensors.front().theirs;
  map.empty = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"};
  return map;
}

// What reads the hidden states, and is no part of them.
bool is_head(const std::string& name) {
  static constexpr std::array<std::string_view, 3> kHeads{"cls.", "classifier.", "qa_outputs."};
  return std::ranges::any_of(kHeads, [&](std::string_view head) { return name.starts_with(head); });
}

}  // namespace

bool is_bert_folder(const std::string& path) {
  if (is_gguf(path) || !is_hf_folder(path)) return false;
  const std::string file = (std::filesystem::path(path) / kHfConfig).string();
  const auto text = read_text_file(file, kLargestHfConfig);
  if (!text.ok()) return false;
  const auto config = parse_json(*text, file);
  return config.ok() && config->text_at("model_type") == "bert";
}

Result<BertSpec> bert_of_config(std::string_view json, const std::string& name) {
  const auto config = parse_json(json, name);
  if (config.ok() && !config->is_map()) return config->wrong("a map");
  Result<BertSpec> spec = config.ok() ? spec_of(*config) : Result<BertSpec>(config.error());
  if (spec.ok()) return spec;
  Error bad = std::move(spec).error();
  if (bad.kind != ErrorKind::unsupported) bad.kind = ErrorKind::corrupt;
  bad.where.file = name;
  return bad;
}

Result<BertFolder> open_bert_folder(const std::string& path) {
  auto folder = std::make_shared<HfFolder>();
  folder->path = path;
  folder->store = TRY(open_posix_store(path));
  const std::string config = TRY(read_text(*folder->store, kHfConfig, kLargestHfConfig));
  const BertSpec model = TRY(bert_of_config(config, path + "/" + kHfConfig));
  auto files = WeightFiles::open(*folder->store, "");
  if (!files.ok()) return below(path, std::move(files).error());
  folder->files = std::move(*files);
  const auto has = [&](const std::string& name) { return folder->files.tensors().contains(name); };
  const std::string prefix = has("bert.embeddings.word_embeddings.weight") ? "bert." : "";
  folder->map = names_of(model, prefix, has(prefix + kOldNorm));
  for (const std::string& name : folder->files.names()) {
    if (is_head(name)) folder->map.empty.push_back(name);
  }
  if (Status fits = check_weights(folder->files, folder->map); !fits.ok()) {
    Error wrong = std::move(fits).error();
    wrong.message = fmt::format("the weights in '{}' are not this model's: {}", path, wrong.message);
    return wrong;
  }
  return BertFolder{model, std::move(folder)};
}

}  // namespace systole

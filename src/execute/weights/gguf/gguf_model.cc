#include "execute/weights/gguf/gguf_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>

#include "ground/base/document.h"

namespace systole {
namespace {

constexpr const char* kEmbedding = "token_embd.weight";
constexpr const char* kOutput = "output.weight";
constexpr const char* kFactors = "rope_freqs.weight";
constexpr const char* kArchitecture = "general.architecture";
constexpr std::array kThirds = {"q", "k", "v"};

// The metadata of an architecture: "llama.block_count" is integer("block_count").
class Metadata {
 public:
  Metadata(const GgufFile& of, const std::string& architecture) : file(of), prefix(architecture + ".") {}

  Result<std::int64_t> integer(const char* key) const { return file.integer(prefix + key, 1); }
  Result<std::int64_t> integer(const char* key, std::int64_t otherwise) const {
    return file.integer(prefix + key, 0, otherwise);
  }
  // As a document has it: a float32 in as few digits as it takes, 1e-05.
  Result<Node> number(const char* key) const {
    const float value = TRY(file.number(prefix + key));
    if (std::isfinite(value)) return Node(NodeKind::number, fmt::format("{}", value));
    return error(ErrorKind::corrupt, "{}{} is {}", prefix, key, value);
  }
  Error unlike(const char* key, const std::string& is, const std::string& followed) const {
    return error(ErrorKind::unsupported, "{}{} is {}, and only {} is followed here", prefix, key, is, followed)
        .hinted("a model that was trained without it can be taken");
  }

  const GgufFile& file;
  const std::string prefix;
};

Result<std::int64_t> vocabulary_of(const GgufFile& file) {
  const GgufTensor* embedding = file.find(kEmbedding);
  if (embedding != nullptr && embedding->shape.size() == 2) return embedding->shape[0];
  return error(ErrorKind::corrupt, "the file has no {} of rows, the embedding of tokens", kEmbedding);
}

// The factor by which Llama 3.1 divides a frequency (transformers' modeling_rope_utils.py,
// _compute_llama3_parameters).
double llama3_factor(double frequency, double factor, double low, double high, double context) {
  const double turns = context * frequency / (2 * std::numbers::pi);  // in the original context
  if (turns > high) return 1;
  if (turns < low) return factor;
  const double smooth = (turns - low) / (high - low);
  return 1 / ((1 - smooth) / factor + smooth);
}

// The four numbers are not in the file. All published models have these, but for `factor`, the largest there is.
Result<Node> rope_of_factors(const Metadata& data, const GgufTensor& tensor, const Node& theta, std::int64_t head) {
  constexpr double kLow = 1, kHigh = 4;
  const std::int64_t context = TRY(data.integer("rope.scaling.original_context_length", 8192));
  const auto refused = [](const std::string& why) {
    return error(ErrorKind::unsupported, "{} {}", kFactors, why)
        .hinted("rotary positions that are scaled as in Llama 3.1 can be taken");
  };
  if (tensor.shape != Shape{head / 2} || tensor.block->id != 0)
    return refused(fmt::format("is {}{}, not F32[{}]", tensor.block->name, to_string(tensor.shape), head / 2));
  std::vector<float> factors(static_cast<std::size_t>(head / 2));
  TRY(data.file.read_elements(tensor, 0, std::as_writable_bytes(std::span(factors))));
  const float factor = *std::max_element(factors.begin(), factors.end());
  if (!(factor >= 1)) return refused(fmt::format("has {} as its largest factor", factor));
  const double base = TRY(theta.as_double());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head));
    const double wanted = llama3_factor(frequency, factor, kLow, kHigh, static_cast<double>(context));
    if (!(std::abs(factors[i] - wanted) <= 1e-3 * wanted)) {
      return refused(
          fmt::format("has the factor {} at {}, where Llama 3.1's scaling by {} in a context of {} has {:.6g}",
                      factors[i], i, factor, context, wanted));
    }
  }
  if (factor == 1) return Node::map({{"rope_theta", theta}, {"rope_type", "default"}});
  return Node::map({{"factor", Node(NodeKind::number, fmt::format("{}", factor))},
                    {"high_freq_factor", kHigh},
                    {"low_freq_factor", kLow},
                    {"original_max_position_embeddings", context},
                    {"rope_theta", theta},
                    {"rope_type", "llama3"}});
}

Result<Node> rope_of(const Metadata& data, std::int64_t head) {
  const char *kind = "rope.scaling.type", *base = "rope.freq_base", *dims = "rope.dimension_count";
  if (const auto rotated = TRY(data.integer(dims, head)); rotated != head)
    return data.unlike(dims, std::to_string(rotated), fmt::format("a head's size, {},", head));
  if (data.file.has(data.prefix + kind)) {
    const std::string name = TRY(data.file.text(data.prefix + kind));
    if (name != "none") return data.unlike(kind, "'" + name + "'", "none");
  }
  const Node theta = data.file.has(data.prefix + base) ? TRY(data.number(base)) : Node(NodeKind::number, "10000.0");
  if (const GgufTensor* factors = data.file.find(kFactors)) return rope_of_factors(data, *factors, theta, head);
  return Node::map({{"rope_theta", theta}, {"rope_type", "default"}});
}

Result<std::int64_t> head_of(const Metadata& data) {
  const std::int64_t width = TRY(data.integer("embedding_length")), heads = TRY(data.integer("attention.head_count"));
  const char *key = "attention.key_length", *value = "attention.value_length";
  const std::int64_t head = TRY(data.integer(key, width / heads));
  if (const auto of_values = TRY(data.integer(value, head)); of_values != head)
    return data.unlike(value, std::to_string(of_values), fmt::format("{}{}, {},", data.prefix, key, head));
  if (head >= 2 && head % 2 == 0) return head;
  return error(ErrorKind::corrupt, "{}{}: a head of {} numbers cannot be rotated", data.prefix, key, head);
}

// Each TRY stands before the map: leaving an expression that has built a part of it would leak that part.
Result<Node> llama_config(const Metadata& data, bool qwen3) {
  const std::int64_t heads = TRY(data.integer("attention.head_count")), head = TRY(head_of(data));
  const std::int64_t context = TRY(data.integer("context_length")), layers = TRY(data.integer("block_count"));
  const std::int64_t width = TRY(data.integer("embedding_length")), mlp = TRY(data.integer("feed_forward_length"));
  const std::int64_t kv_heads = TRY(data.integer("attention.head_count_kv", heads));
  const char *experts = "expert_count", *window = "attention.sliding_window";
  if (const auto count = TRY(data.integer(experts, 0)); count != 0)
    return data.unlike(experts, std::to_string(count), "0");
  if (const auto length = TRY(data.integer(window, 0)); length != 0 && length < context)
    return data.unlike(window, std::to_string(length), "0");
  const Node eps = TRY(data.number("attention.layer_norm_rms_epsilon")), rope = TRY(rope_of(data, head));
  return Node::map({{"architectures", Node::sequence({qwen3 ? "Qwen3ForCausalLM" : "LlamaForCausalLM"})},
                    {"attention_bias", false},
                    {"head_dim", head},
                    {"hidden_act", "silu"},
                    {"hidden_size", width},
                    {"intermediate_size", mlp},
                    {"max_position_embeddings", context},
                    {"mlp_bias", false},
                    {"model_type", qwen3 ? "qwen3" : "llama"},
                    {"num_attention_heads", heads},
                    {"num_hidden_layers", layers},
                    {"num_key_value_heads", kv_heads},
                    {"rms_norm_eps", eps},
                    {"rope_parameters", rope}});
}

Result<Node> gpt2_config(const Metadata& data) {
  const std::int64_t width = TRY(data.integer("embedding_length")), heads = TRY(data.integer("attention.head_count"));
  const std::int64_t context = TRY(data.integer("context_length")), layers = TRY(data.integer("block_count"));
  const std::int64_t mlp = TRY(data.integer("feed_forward_length"));
  const Node eps = TRY(data.number("attention.layer_norm_epsilon"));
  return Node::map({{"activation_function", "gelu_new"},
                    {"architectures", Node::sequence({"GPT2LMHeadModel"})},
                    {"layer_norm_epsilon", eps},
                    {"model_type", "gpt2"},
                    {"n_embd", width},
                    {"n_head", heads},
                    {"n_inner", mlp},
                    {"n_layer", layers},
                    {"n_positions", context}});
}

// "blk.3.attn_q.weight" is part "attn_q.weight" of a block.
std::string_view part_of_block(std::string_view name) {
  if (!name.starts_with("blk.")) return {};
  const std::size_t end = name.find('.', 4);
  return end == std::string_view::npos ? std::string_view() : name.substr(end + 1);
}

// A tensor as it is read: the elements of a file's tensor from `first` on, its rows reordered in groups of `head`.
struct View {
  GgufTensor tensor;
  Shape shape;
  std::int64_t first = 0, head = 0;  // 0: in the order of the file
};

class GgufReader : public TensorReader {
 public:
  explicit GgufReader(GgufFile file) : file_(std::move(file)) {}

  void add(const std::string& name, View view) { views_.emplace(name, std::move(view)); }

  Status read_elements(const std::string& name, std::int64_t first, std::span<std::byte> into) const override {
    const View& view = views_.at(name);
    if (view.head == 0) return file_.read_elements(view.tensor, view.first + first, into);
    const GgufBlock& block = *view.tensor.block;
    const std::int64_t width = view.shape.back(), begin = first / width;
    const auto bytes = static_cast<std::size_t>(width * size_of(block.dtype));
    const std::int64_t end = begin + static_cast<std::int64_t>(into.size() / bytes);
    std::vector<float> numbers(block.widen == nullptr ? 0 : static_cast<std::size_t>(width));
    return visit_blocks(view, begin, end, [&](std::int64_t row, std::span<const std::byte> blocks) -> Status {
      std::byte* const to = into.data() + static_cast<std::size_t>(row - begin) * bytes;
      if (block.widen == nullptr) {
        std::memcpy(to, blocks.data(), bytes);
      } else {
        widen(block, blocks, numbers);
        std::memcpy(to, numbers.data(), bytes);
      }
      return {};
    });
  }

  StoredRows rows(const std::string& name) const override {
    const View& view = views_.at(name);
    StoredRows rows{[this, &view](std::int64_t first, std::int64_t last, const TakeRow& take) {
      return visit_numbers(view, first, last, take);
    }};
    if (is_int4(*view.tensor.block)) {
      rows.groups = [this, &view](std::int64_t first, std::int64_t last, std::span<Int4Block> into) {
        return read_groups(view, first, last, into);
      };
    }
    rows.together = std::max<std::int64_t>(view.head, 1);
    return rows;
  }

 private:
  // Calls visit(row, its blocks) for rows [first, last), which are read at once.
  template <typename Visit>
  Status visit_blocks(const View& view, std::int64_t first, std::int64_t last, const Visit& visit) const {
    const GgufBlock& block = *view.tensor.block;
    const std::int64_t width = view.shape.back(), together = std::max<std::int64_t>(view.head, 1);
    const std::int64_t begin = first / together * together, end = (last + together - 1) / together * together;
    const auto bytes = static_cast<std::size_t>(width / block.elements * block.bytes);
    const std::size_t size = static_cast<std::size_t>(end - begin) * bytes;
    const auto raw = std::make_unique_for_overwrite<std::byte[]>(size);
    TRY(file_.read_blocks(view.tensor, view.first + begin * width, {raw.get(), size}));
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t at = (view.head == 0 ? row : there(view, row)) - begin;
      TRY(visit(row, std::span<const std::byte>(raw.get() + static_cast<std::size_t>(at) * bytes, bytes)));
    }
    return {};
  }

  Status visit_numbers(const View& view, std::int64_t first, std::int64_t last, const TakeRow& take) const {
    const GgufBlock& block = *view.tensor.block;
    std::vector<float> numbers(static_cast<std::size_t>(view.shape.back()));
    return visit_blocks(view, first, last, [&](std::int64_t row, std::span<const std::byte> blocks) -> Status {
      if (block.widen != nullptr) {
        widen(block, blocks, numbers);
      } else {
        to_f32(block.dtype, blocks, numbers);
      }
      take(row, numbers);
      return {};
    });
  }

  Status read_groups(const View& view, std::int64_t first, std::int64_t last, std::span<Int4Block> into) const {
    const GgufBlock& block = *view.tensor.block;
    const auto groups = static_cast<std::size_t>(view.shape.back() / block.elements);
    return visit_blocks(view, first, last, [&](std::int64_t row, std::span<const std::byte> blocks) -> Status {
      if (as_int4(block, blocks, into.subspan(static_cast<std::size_t>(row - first) * groups, groups))) return {};
      return error(ErrorKind::unsupported, "tensor '{}' has a scale of {} too large for four bits", view.tensor.name,
                   block.name)
          .hinted("--weights int8 takes it");
    });
  }

  // The row of the file that is read as `row`.
  static std::int64_t there(const View& view, std::int64_t row) {
    const std::int64_t in_head = row % view.head, half = view.head / 2;
    return row - in_head + in_head % half * 2 + in_head / half;
  }

  GgufFile file_;
  std::map<std::string, View> views_;
};

// q, k and v, which follow each other.
Status add_thirds(const GgufTensor& tensor, std::map<std::string, View>& views) {
  View view{tensor, tensor.shape};
  view.shape[0] /= 3;
  const std::int64_t elements = num_elements(view.shape);
  if (tensor.shape[0] % 3 != 0 || elements % tensor.block->elements != 0) {
    return error(ErrorKind::corrupt, "tensor '{}' is {}{}, which is not q, k and v", tensor.name, tensor.block->name,
                 to_string(tensor.shape));
  }
  for (const char* third : kThirds) {
    views.emplace(fmt::format("{}.{}", tensor.name, third), view);
    view.first += elements;
  }
  return {};
}

}  // namespace

Result<std::string> config_of_gguf(const GgufFile& file) {
  const std::string architecture = TRY(file.text(kArchitecture));
  const Metadata data(file, architecture);
  const bool gpt2 = architecture == "gpt2", qwen3 = architecture == "qwen3";
  if (architecture != "llama" && !gpt2 && !qwen3) {
    return error(ErrorKind::unsupported, "a GGUF model of architecture '{}' cannot be taken", architecture)
        .hinted("llama, to which Mistral is converted too, qwen3 and gpt2 can");
  }
  Node config = gpt2 ? TRY(gpt2_config(data)) : TRY(llama_config(data, qwen3));
  config.set("tie_word_embeddings", file.find(kOutput) == nullptr);
  config.set("vocab_size", TRY(vocabulary_of(file)));
  return to_json(config, 2) + "\n";
}

Result<WeightFiles> weights_of_gguf(GgufFile file, Store& store, const std::string& path) {
  const bool neighbours = TRY(file.text(kArchitecture)) == "llama";
  const std::int64_t head = neighbours ? TRY(head_of(Metadata(file, "llama"))) : 0;
  std::map<std::string, View> views;
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string_view part = part_of_block(tensor.name);
    if (part.starts_with("attn_qkv.")) {
      TRY(add_thirds(tensor, views));
      continue;
    }
    View view{tensor, tensor.shape};
    if (neighbours && (part == "attn_q.weight" || part == "attn_k.weight")) {
      view.head = head;
      if (tensor.shape.size() != 2 || tensor.shape[0] % head != 0) {
        return error(ErrorKind::corrupt, "tensor '{}' is {}, which is no rows of heads of {}", tensor.name,
                     to_string(tensor.shape), head);
      }
    }
    views.emplace(tensor.name, std::move(view));
  }
  std::map<std::string, WeightTensor> tensors;
  auto reader = std::make_shared<GgufReader>(std::move(file).without_values());
  for (auto& [name, view] : views) {
    tensors.emplace(name, WeightTensor{view.tensor.block->dtype, view.shape, 0});
    reader->add(name, std::move(view));
  }
  return WeightFiles(store, path, std::move(tensors), std::move(reader));
}

namespace {

struct Renamed {
  std::string_view theirs, gguf;
};
constexpr std::array kWhole = {Renamed{"embed_tokens", "token_embd"}, Renamed{"wte", "token_embd"},
                               Renamed{"wpe", "position_embd"},       Renamed{"norm", "output_norm"},
                               Renamed{"ln_f", "output_norm"},        Renamed{"lm_head", "output"}};
constexpr std::array kOfBlock = {Renamed{"input_layernorm", "attn_norm"},
                                 Renamed{"self_attn.q_proj", "attn_q"},
                                 Renamed{"self_attn.k_proj", "attn_k"},
                                 Renamed{"self_attn.v_proj", "attn_v"},
                                 Renamed{"self_attn.q_norm", "attn_q_norm"},
                                 Renamed{"self_attn.k_norm", "attn_k_norm"},
                                 Renamed{"self_attn.o_proj", "attn_output"},
                                 Renamed{"post_attention_layernorm", "ffn_norm"},
                                 Renamed{"mlp.gate_proj", "ffn_gate"},
                                 Renamed{"mlp.up_proj", "ffn_up"},
                                 Renamed{"mlp.down_proj", "ffn_down"},
                                 Renamed{"ln_1", "attn_norm"},
                                 Renamed{"attn.c_attn", "attn_qkv"},
                                 Renamed{"attn.c_proj", "attn_output"},
                                 Renamed{"ln_2", "ffn_norm"},
                                 Renamed{"mlp.c_fc", "ffn_up"},
                                 Renamed{"mlp.c_proj", "ffn_down"}};

template <typename Names>
std::string renamed(std::string_view name, const Names& names) {
  const std::size_t end = name.rfind('.');  // ".weight" or ".bias"
  const auto found = std::ranges::find(names, name.substr(0, end), &Renamed::theirs);
  CHECK(found != names.end(), "GGUF has no name for '{}'", name);
  return fmt::format("{}{}", found->gguf, name.substr(end));
}

// REQUIRES: `name` is of a llama or gpt2 and has no prefix.
std::string gguf_name(std::string_view name) {
  for (const std::string_view blocks : {"layers.", "h."}) {
    if (!name.starts_with(blocks)) continue;
    const std::size_t end = name.find('.', blocks.size());
    return fmt::format("blk.{}.{}", name.substr(blocks.size(), end - blocks.size()),
                       renamed(name.substr(end + 1), kOfBlock));
  }
  return renamed(name, kWhole);
}

}  // namespace

NameMap gguf_names(NameMap map) {
  const bool transposed = map.transposed;
  map = without_prefix(std::move(map));
  for (MappedTensor& tensor : map.tensors) {
    tensor.theirs = gguf_name(tensor.theirs);
    const bool linear = !part_of_block(tensor.theirs).empty() && tensor.shape.size() == 2;
    if (tensor.columns < tensor.shape.back()) {
      tensor.theirs += fmt::format(".{}", kThirds.at(static_cast<std::size_t>(tensor.first / tensor.columns)));
      tensor.shape.back() = tensor.columns;
      tensor.first = 0;
    }
    if (!transposed || !linear) continue;
    std::swap(tensor.shape[0], tensor.shape[1]);
    tensor.columns = tensor.shape[1];
    tensor.turned = true;
  }
  map.empty = {kFactors};
  map.copies.clear();
  map.embedding = kEmbedding;
  map.transposed = false;
  return map;
}

}  // namespace systole

#include "execute/weights/lora_adapter.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "execute/checkpoint/safetensors.h"
#include "execute/weights/name_map.h"
#include "ground/base/document.h"
#include "ground/base/errors.h"
#include "ground/base/hash.h"
#include "ground/base/nearest.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

using checkpoint::SafetensorsEntry;
using checkpoint::SafetensorsFile;

constexpr const char* kTensors = "adapter_model.safetensors";
constexpr const char* kConfig = "adapter_config.json";
constexpr Bytes kLargestConfig = kMiB;
constexpr std::string_view kBefore = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";

Error refused(const std::string& key, const std::string& why) {
  return key_error(ErrorKind::unsupported, key, "{}", why)
      .at({kConfig})
      .hinted("merge the adapter into its model with PEFT's merge_and_unload, and serve that");
}

bool says_nothing(const Node& value) {
  const bool empty = value.items().empty() && value.entries().empty();
  return value.is_null() || value == Node(false) || (!value.is_scalar() && empty);
}

// Numbers of some modules, in the order of the file: the first that matches counts.
using Patterns = std::vector<std::pair<std::string, double>>;

// What of adapter_config.json decides how tensors are read.
struct Config {
  double alpha = 0;
  std::int64_t rank = 0;
  bool by_root = false;  // use_rslora
  Patterns alphas, ranks;

  double scale_of(const std::string& module, std::int64_t tensor_rank) const {
    const double over = static_cast<double>(tensor_rank);
    return of(alphas, module, alpha) / (by_root ? std::sqrt(over) : over);
  }
  std::int64_t rank_of(const std::string& module) const {
    const double wanted = of(ranks, module, static_cast<double>(rank));
    return static_cast<std::int64_t>(std::clamp(wanted, 0.0, 1e6));
  }

 private:
  // PEFT's patterns are regular expressions of which a whole name or its end after a dot matches; here they are names.
  static double of(const Patterns& patterns, const std::string& module, double otherwise) {
    for (const auto& [name, value] : patterns) {
      if (module == name || module.ends_with("." + name)) return value;
    }
    return otherwise;
  }
};

Result<Patterns> patterns_of(const Node& config, const std::string& key) {
  Patterns patterns;
  const Node* found = config.find(key);
  if (found == nullptr || found->is_null()) return patterns;
  if (!found->is_map()) return found->wrong("a map");
  for (const Node::Entry& entry : found->entries()) {
    if (entry.key.find_first_of("^$*+?()[]{}|\\") != std::string::npos)
      return refused(key, fmt::format("'{}' is a regular expression; names of modules are read", entry.key));
    patterns.emplace_back(entry.key, TRY(entry.value.as_double()));
  }
  return patterns;
}

// Each of them changes what an adapter does, or which tensors it has.
Status check_variants(const Node& config) {
  const std::string type = config.text_at("peft_type");
  if (type != "LORA") return refused("peft_type", fmt::format("'{}', and adapters of LORA are served", type));
  const Node* bias = config.find("bias");
  if (bias != nullptr && !bias->is_null() && *bias != Node("none"))
    return refused("bias", "an adapter that trains biases too");
  for (const char* key : {"use_dora", "modules_to_save", "layer_replication", "trainable_token_indices",
                          "target_parameters", "use_qalora", "alora_invocation_tokens", "lora_bias"}) {
    const Node* found = config.find(key);
    if (found != nullptr && !says_nothing(*found)) return refused(key, "adapters with it are not served");
  }
  return {};
}

Result<Config> config_of(Store& folder) {
  auto parsed = parse_json(TRY(read_text(folder, kConfig, kLargestConfig)), kConfig, {.depth = 16});
  if (!parsed.ok()) {
    Error bad = std::move(parsed).error();
    bad.kind = ErrorKind::corrupt;
    return bad;
  }
  const Node& node = *parsed;
  if (!node.is_map()) return node.wrong("a map");
  TRY(check_variants(node));
  Config config;
  config.rank = TRY(TRY(node.get("r"))->as_int(1));
  config.alpha = TRY(TRY(node.get("lora_alpha"))->as_double());
  if (const Node* root = node.find("use_rslora"); root != nullptr && !root->is_null())
    config.by_root = TRY(root->as_bool());
  config.alphas = TRY(patterns_of(node, "alpha_pattern"));
  config.ranks = TRY(patterns_of(node, "rank_pattern"));
  return config;
}

bool all_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

Result<std::vector<float>> numbers_of(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  if (entry.dtype != DType::f32 && entry.dtype != DType::bf16 && entry.dtype != DType::f16) {
    return error(ErrorKind::unsupported, "tensor '{}' is {}, which is no type of weights", entry.name,
                 name_of(entry.dtype))
        .at({kTensors})
        .hinted("f32, bf16 and f16 are taken; save the adapter as one of them");
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(entry.dtype, entry.shape).count()));
  TRY(file.read(entry.name, bytes));
  std::vector<float> numbers(static_cast<std::size_t>(num_elements(entry.shape)));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(load(entry.dtype, bytes.data(), static_cast<std::int64_t>(i)));
  if (all_finite(numbers)) return numbers;
  return error(ErrorKind::invalid, "tensor '{}' has a value that is not finite", entry.name)
      .at({kTensors})
      .hinted("the training of this adapter diverged, or the file is damaged; take another");
}

// A layer of Hugging Face, and our projections in it.
struct Module {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  std::int64_t inputs = 0, outputs = 0;
  std::vector<const MappedTensor*> parts;
};

// "blocks.3.attn.q" is the projection attn.q of layer 3. Nothing: it is no part of a block.
struct Place {
  std::int64_t layer;
  std::string projection;
};
std::optional<Place> place_of(const std::string& ours) {
  constexpr std::string_view kBlocks = "blocks.";
  const std::size_t dot = ours.find('.', kBlocks.size());
  if (!ours.starts_with(kBlocks) || dot == std::string::npos) return std::nullopt;
  const std::optional<std::int64_t> layer =
      number_from<std::int64_t>(std::string_view(ours).substr(kBlocks.size(), dot - kBlocks.size()));
  if (!layer) return std::nullopt;
  return Place{*layer, ours.substr(dot + 1)};
}

bool is_served(const Module& module) {
  return std::ranges::all_of(module.parts, [](const MappedTensor* part) { return place_of(part->ours).has_value(); });
}

class Reader {
 public:
  Reader(const SafetensorsFile& file, Config config, NameMap map)
      : file_(file), config_(std::move(config)), map_(std::move(map)) {
    for (const MappedTensor& mapped : map_.tensors) {
      constexpr std::string_view kWeight = ".weight";
      if (mapped.shape.size() != 2 || !mapped.theirs.ends_with(kWeight)) continue;
      const std::string name = mapped.theirs.substr(0, mapped.theirs.size() - kWeight.size());
      Module& module = modules_[name];
      const std::size_t in = mapped.turned ? 1 : 0;
      module.name = name;
      module.inputs = mapped.shape[in];
      module.outputs = mapped.shape[1 - in];
      module.parts.push_back(&mapped);
    }
  }

  Result<LoraAdapter> read() {
    LoraAdapter adapter;
    std::set<std::string> named;
    for (const SafetensorsEntry& entry : file_.header().tensors) named.insert(TRY(module_of(entry.name)));
    if (named.empty()) return error(ErrorKind::invalid, "the adapter has no tensors").at({kTensors});
    for (const std::string& name : named) TRY(add(name, adapter));
    return adapter;
  }

 private:
  // "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" is of "model.layers.0.self_attn.q_proj".
  static Result<std::string> module_of(const std::string& tensor) {
    for (const std::string_view end : {kA, kB}) {
      if (tensor.starts_with(kBefore) && tensor.ends_with(end) && tensor.size() > kBefore.size() + end.size())
        return tensor.substr(kBefore.size(), tensor.size() - kBefore.size() - end.size());
    }
    return error(ErrorKind::unsupported, "tensor '{}' is no lora_A or lora_B of a layer", tensor)
        .at({kTensors})
        .hinted("merge the adapter into its model with PEFT's merge_and_unload, and serve that");
  }

  Result<const Module*> find(const std::string& name) const {
    if (const auto found = modules_.find(name); found != modules_.end()) return &found->second;
    std::vector<std::string> names;
    for (const auto& [known, module] : modules_)
      if (is_served(module)) names.push_back(known);
    std::string hint = nearest_hint(name, names);
    if (hint.empty()) hint = "serve it with the model that it was trained for";
    return error(ErrorKind::not_found, "the adapter changes '{}', which this model lacks", name)
        .at({kTensors})
        .hinted(std::move(hint));
  }

  // A or B of a module, of the given sizes.
  Result<std::vector<float>> matrix(const std::string& tensor, std::int64_t rows, std::int64_t columns) const {
    const SafetensorsEntry* entry = file_.header().find(tensor);
    if (entry == nullptr) {
      return error(ErrorKind::not_found, "there is no tensor '{}'", tensor)
          .at({kTensors})
          .hinted("the file is incomplete; copy it again, or save the adapter again");
    }
    if (entry->shape != Shape{rows, columns}) {
      return error(ErrorKind::invalid, "tensor '{}' is {}, this model and r make it {}", tensor,
                   to_string(entry->shape), to_string(Shape{rows, columns}))
          .at({kTensors})
          .hinted("serve it with the model that it was trained for");
    }
    return numbers_of(file_, *entry);
  }

  Status add(const std::string& name, LoraAdapter& adapter) const {
    const Module& module = *TRY(find(name));
    if (!is_served(module)) {
      return error(ErrorKind::unsupported, "the adapter changes '{}', and those of projections in blocks are served",
                   name)
          .at({kTensors})
          .hinted("merge the adapter into its model with PEFT's merge_and_unload, and serve that");
    }
    const std::int64_t rank = config_.rank_of(name);
    if (rank < 1 || rank > kMostLoraRank) {
      return key_error(ErrorKind::unsupported, "r", "{} for '{}', served are ranks from 1 to {}", rank, name,
                       kMostLoraRank)
          .at({kConfig})
          .hinted("train the adapter with a lower r, or merge it with PEFT's merge_and_unload");
    }
    const std::string before = std::string(kBefore) + name;
    const std::vector<float> a = TRY(matrix(before + std::string(kA), rank, module.inputs));
    std::vector<float> b = TRY(matrix(before + std::string(kB), module.outputs, rank));
    const double scale = config_.scale_of(name, rank);
    for (float& number : b) number = static_cast<float>(scale * double{number});
    if (!all_finite(b)) {
      return key_error(ErrorKind::invalid, "lora_alpha", "'{}' times {} is not finite", name, scale)
          .at({kConfig})
          .hinted("the file is damaged; copy it again, or save the adapter again");
    }
    for (const MappedTensor* part : module.parts) {
      const Place place = *place_of(part->ours);
      const std::int64_t outputs = part->turned ? module.outputs : part->columns;
      LoraAdapter::Layer layer{rank, a, std::vector<float>(static_cast<std::size_t>(rank * outputs))};
      for (std::int64_t r = 0; r < rank; ++r) {
        for (std::int64_t o = 0; o < outputs; ++o)
          layer.b[static_cast<std::size_t>(r * outputs + o)] =
              b[static_cast<std::size_t>((part->first + o) * rank + r)];
      }
      adapter.projections[place.projection].insert_or_assign(place.layer, std::move(layer));
    }
    return {};
  }

  const SafetensorsFile& file_;
  const Config config_;
  const NameMap map_;
  std::map<std::string, Module> modules_;
};

}  // namespace

std::int64_t LoraAdapter::rank() const {
  std::int64_t rank = 0;
  for (const auto& [projection, layers] : projections) {
    for (const auto& [index, layer] : layers) rank = std::max(rank, layer.rank);
  }
  return rank;
}

Result<LoraAdapter> read_lora_adapter(Store& folder, const ModelSpec& model) {
  Config config = TRY(config_of(folder));
  NameMap map = TRY(name_map(model));
  const SafetensorsFile file = TRY(SafetensorsFile::open(folder, kTensors));
  return Reader(file, std::move(config), std::move(map)).read();
}

Result<LoraAdapter> read_lora_adapter(const std::string& path, const ModelSpec& model) {
  const auto hinted = [](Error error) {
    if (error.kind == ErrorKind::not_found && error.hint.empty())
      error.hint = fmt::format("--lora NAME=PATH: a folder with {} and {}, as PEFT's save_pretrained writes it",
                               kConfig, kTensors);
    return error;
  };
  auto folder = open_posix_store(path);
  if (!folder.ok()) return hinted(std::move(folder).error());
  auto adapter = read_lora_adapter(**folder, model);
  if (!adapter.ok()) return hinted(below(path, std::move(adapter).error()));
  return adapter;
}

std::string hash_of(const LoraAdapter& adapter) {
  Hasher hasher;
  for (const auto& [projection, layers] : adapter.projections) {
    for (const auto& [index, layer] : layers) {
      hasher.add(fmt::format("{} {} {} {}\n", projection, index, layer.rank, layer.a.size()));
      hasher.add(std::as_bytes(std::span(layer.a))).add(std::as_bytes(std::span(layer.b)));
    }
  }
  return to_hex(hasher.digest());
}

ServedAdapters served_adapters(std::span<const LoraAdapter> adapters) {
  ServedAdapters served;
  std::set<std::string> projections;
  for (const LoraAdapter& adapter : adapters) {
    served.rank = std::max(served.rank, adapter.rank());
    for (const auto& [projection, layers] : adapter.projections) projections.insert(projection);
  }
  served.count = static_cast<std::int64_t>(adapters.size());
  served.projections.assign(projections.begin(), projections.end());
  return served;
}

namespace {

// The part of a tensor that a device has. REQUIRES: `cut` is the value's.
std::vector<float> part_of(std::span<const float> whole, const ProgramValue& value, const Mesh& mesh,
                           std::int64_t device) {
  const Shape& shape = value.cut->whole.shape;
  std::vector<float> part(static_cast<std::size_t>(value.type.num_elements()));
  for_each_run(shape, box_of(shape, value.cut->layout, mesh, mesh.coordinates(device)), value.type.shape,
               [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                 std::copy_n(whole.begin() + from, count, part.begin() + to);
               });
  return part;
}

// One tensor [layer, adapter, rank, width] of all adapters; zeros where they have nothing.
Status write_tensor(Executor& executor, const std::string& name, std::span<const LoraAdapter> adapters,
                    const std::string& projection, std::vector<float> LoraAdapter::Layer::*matrix,
                    std::int64_t device) {
  const int number = executor.program().value_named(name);
  const ProgramValue& value = executor.program().values[static_cast<std::size_t>(number)];
  const Type& type = value.cut ? value.cut->whole : value.type;
  const std::int64_t count = type.size(1), each = type.size(2) * type.size(3);
  std::vector<float> numbers(static_cast<std::size_t>(type.num_elements()));
  for (std::size_t k = 0; k < adapters.size(); ++k) {
    const auto found = adapters[k].projections.find(projection);
    if (found == adapters[k].projections.end()) continue;
    for (const auto& [index, layer] : found->second) {
      const std::vector<float>& from = layer.*matrix;
      const std::int64_t at = (index * count + static_cast<std::int64_t>(k)) * each;
      CHECK(at + static_cast<std::int64_t>(from.size()) <= type.num_elements() &&
                static_cast<std::int64_t>(from.size()) <= each,
            "{} numbers of adapter {} for '{}'", from.size(), k, name);
      std::ranges::copy(from, numbers.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  if (value.cut && value.cut->layout.cut()) numbers = part_of(numbers, value, executor.program().mesh, device);
  return executor.write(number, 0, std::as_bytes(std::span(numbers)));
}

}  // namespace

Status write_adapters(Executor& executor, std::span<const LoraAdapter> adapters, std::int64_t device) {
  for (const std::string& projection : served_adapters(adapters).projections) {
    TRY(write_tensor(executor, adapter_a(projection), adapters, projection, &LoraAdapter::Layer::a, device));
    TRY(write_tensor(executor, adapter_b(projection), adapters, projection, &LoraAdapter::Layer::b, device));
  }
  return {};
}

}  // namespace systole

#include "execute/weights/peft.h"

#include <algorithm>
#include <cctype>

#include "execute/checkpoint/safetensors.h"
#include "ground/base/document.h"

namespace systole {
namespace {

using checkpoint::SafetensorsSource;

constexpr const char* kTensors = "adapter_model.safetensors";
constexpr const char* kConfig = "adapter_config.json";
constexpr std::string_view kWeight = ".weight";

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> numbers;

  Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), numbers(static_cast<std::size_t>(r * c)) {}
  float& at(std::int64_t row, std::int64_t column) { return numbers[static_cast<std::size_t>(row * columns + column)]; }
};

// A parameter as [rows, columns], whatever its dims. REQUIRES: `rows` divides its size.
Result<Matrix> read_matrix(const ParameterSource& from, const std::string& name, std::int64_t rows) {
  const Shape shape = TRY(from.shape(name));
  const DType dtype = TRY(from.dtype(name));
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(dtype, shape).count()));
  TRY(from.read(name, shape, bytes));
  Matrix matrix(rows, num_elements(shape) / rows);
  for (std::int64_t i = 0; i < num_elements(shape); ++i)
    matrix.numbers[static_cast<std::size_t>(i)] = static_cast<float>(load(dtype, bytes.data(), i));
  return matrix;
}

// An HF layer and our weights in it that have adapters.
struct Layer {
  std::string name;  // "transformer.h.0.attn.c_attn"
  std::int64_t inputs = 0, outputs = 0, rank = 0;
  std::vector<const MappedTensor*> parts;
};

Result<std::vector<Layer>> layers_of(const ParameterSource& from, const NameMap& map) {
  std::vector<Layer> layers;
  for (const MappedTensor& mapped : map.tensors) {
    const Result<Shape> a = from.shape(mapped.ours + ".lora_a");
    if (!a.ok()) continue;
    if (mapped.shape.size() != 2 || !mapped.theirs.ends_with(kWeight))
      return error(ErrorKind::corrupt, "'{}' has adapters and is no layer's weight", mapped.theirs);
    std::string name = mapped.theirs.substr(0, mapped.theirs.size() - kWeight.size());
    if (layers.empty() || layers.back().name != name) {
      const std::size_t in = mapped.turned ? 1 : 0;
      layers.push_back({std::move(name), mapped.shape[in], mapped.shape[1 - in], 0, {}});
    }
    layers.back().rank += a->back();
    layers.back().parts.push_back(&mapped);
  }
  return layers;
}

struct Adapters {
  Matrix a, b;
};

Result<Adapters> adapters_of(const Layer& layer, const ParameterSource& from) {
  Adapters adapters{Matrix(layer.rank, layer.inputs), Matrix(layer.outputs, layer.rank)};
  std::int64_t first = 0;  // first rank index of this part
  for (const MappedTensor* part : layer.parts) {
    Matrix a = TRY(read_matrix(from, part->ours + ".lora_a", layer.inputs));
    const std::int64_t rank = a.columns;
    Matrix b = TRY(read_matrix(from, part->ours + ".lora_b", rank));
    const std::int64_t outputs = part->turned ? layer.outputs : part->columns;
    if (b.columns != outputs || first + rank > layer.rank)
      return error(ErrorKind::corrupt, "the adapters of '{}' are of another size", part->ours);
    for (std::int64_t k = 0; k < rank; ++k) {
      for (std::int64_t i = 0; i < layer.inputs; ++i) adapters.a.at(first + k, i) = a.at(i, k);
      for (std::int64_t o = 0; o < outputs; ++o) adapters.b.at(part->first + o, first + k) = b.at(k, o);
    }
    first += rank;
  }
  return adapters;
}

SafetensorsSource tensor_of(std::string name, Matrix matrix) {
  return {std::move(name),
          DType::f32,
          {matrix.rows, matrix.columns},
          [numbers = std::move(matrix.numbers)](const SafetensorsSource::Take& take) {
            return take(std::as_bytes(std::span(numbers)));
          }};
}

// The name by which PEFT finds the layer in every block: "attn.c_attn" of "transformer.h.0.attn.c_attn".
std::string module_of(const std::string& layer) {
  for (std::size_t dot = layer.rfind('.'); dot != std::string::npos && dot > 0; dot = layer.rfind('.', dot - 1))
    if (std::isdigit(static_cast<unsigned char>(layer[dot - 1]))) return layer.substr(dot + 1);
  return layer;
}

// PEFT's scale is lora_alpha / r, with each layer's own rank.
Node config_of(const std::vector<Layer>& layers, const AdapterOptions& options) {
  std::map<std::string, std::int64_t> ranks;
  for (const Layer& layer : layers) ranks.emplace(module_of(layer.name), layer.rank);
  std::int64_t rank = ranks.begin()->second;
  for (const auto& [module, of_module] : ranks) rank = std::min(rank, of_module);
  Node modules = Node::sequence(), rank_pattern = Node::map(), alpha_pattern = Node::map();
  for (const auto& [module, of_module] : ranks) {
    modules.push(module);
    if (of_module == rank) continue;
    rank_pattern.set(module, of_module);
    alpha_pattern.set(module, options.scale * static_cast<double>(of_module));
  }
  return Node::map({{"alpha_pattern", std::move(alpha_pattern)},
                    {"base_model_name_or_path", options.base},
                    {"bias", "none"},
                    {"fan_in_fan_out", options.transposed},
                    {"inference_mode", true},
                    {"lora_alpha", options.scale * static_cast<double>(rank)},
                    {"lora_dropout", 0.0},
                    {"peft_type", "LORA"},
                    {"r", rank},
                    {"rank_pattern", std::move(rank_pattern)},
                    {"target_modules", std::move(modules)},
                    {"task_type", "CAUSAL_LM"}});
}

}  // namespace

Result<ExportedFiles> export_adapters(const ParameterSource& from, const NameMap& map, Store& to,
                                      const AdapterOptions& options) {
  const std::vector<Layer> layers = TRY(layers_of(from, map));
  if (layers.empty()) {
    return error(ErrorKind::invalid, "there are no adapters: the model was trained without model.adapters.rank")
        .hinted("without --adapters the model is written");
  }
  std::vector<SafetensorsSource> tensors;
  ExportedFiles exported;
  for (const Layer& layer : layers) {
    Adapters adapters = TRY(adapters_of(layer, from));
    exported.bytes += bytes_of(DType::f32, {adapters.a.rows, adapters.a.columns}) +
                      bytes_of(DType::f32, {adapters.b.rows, adapters.b.columns});
    tensors.push_back(tensor_of("base_model.model." + layer.name + ".lora_A.weight", std::move(adapters.a)));
    tensors.push_back(tensor_of("base_model.model." + layer.name + ".lora_B.weight", std::move(adapters.b)));
  }
  exported.tensors = static_cast<int>(tensors.size());
  TRY(checkpoint::write_safetensors(to, kTensors, std::move(tensors), {{"format", "pt"}}));
  TRY(write_whole(to, kConfig, to_json(config_of(layers, options), 2) + "\n"));
  exported.files = {kTensors, kConfig};
  return exported;
}

}  // namespace systole

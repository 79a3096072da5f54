#include "execute/weights/export.h"

#include <algorithm>

#include "execute/checkpoint/safetensors.h"
#include "ground/base/document.h"

namespace systole {
namespace {

using checkpoint::SafetensorsSource;

// An HF tensor and our parts of it.
struct Whole {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  std::vector<const MappedTensor*> parts;
};

std::vector<Whole> wholes_of(const NameMap& map, const ExportOptions& options) {
  std::vector<Whole> wholes;
  for (const MappedTensor& mapped : map.tensors) {
    if (wholes.empty() || wholes.back().name != mapped.theirs) {
      const auto dtype = options.dtypes.find(mapped.theirs);
      wholes.push_back({mapped.theirs, mapped.shape, dtype == options.dtypes.end() ? DType::f32 : dtype->second, {}});
    }
    wholes.back().parts.push_back(&mapped);
  }
  return wholes;
}

void put(const MappedTensor& part, DType from, std::span<const std::byte> ours, DType to, std::span<std::byte> theirs) {
  const std::int64_t width = part.shape.back(), rows = part.shape.size() == 1 ? 1 : part.shape[0];
  const auto copy = [&](std::int64_t source, std::int64_t target) {
    if (from == to) {
      const std::int64_t size = size_of(to);
      __builtin_memcpy(theirs.data() + target * size, ours.data() + source * size, static_cast<std::size_t>(size));
    } else {
      store(to, theirs.data(), target, load(from, ours.data(), source));
    }
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < part.columns; ++c)
      copy(part.turned ? c * rows + r : r * part.columns + c, r * width + part.first + c);
  }
}

SafetensorsSource source_of(const Whole& whole, const ParameterSource& from) {
  return {whole.name, whole.dtype, whole.shape, [&whole, &from](const SafetensorsSource::Take& take) -> Status {
            std::vector<std::byte> theirs(static_cast<std::size_t>(bytes_of(whole.dtype, whole.shape).count())), ours;
            for (const MappedTensor* part : whole.parts) {
              const DType dtype = TRY(from.dtype(part->ours));
              const Shape shape = TRY(from.shape(part->ours));
              const std::int64_t rows = part->shape.size() == 1 ? 1 : part->shape[0];
              if (num_elements(shape) != rows * part->columns)
                return error(ErrorKind::invalid, "'{}' is {}, and is no part of '{}', which is {}", part->ours,
                             to_string(shape), whole.name, to_string(whole.shape));
              ours.resize(static_cast<std::size_t>(bytes_of(dtype, shape).count()));
              TRY(from.read(part->ours, shape, ours));
              put(*part, dtype, ours, whole.dtype, theirs);
            }
            return take(theirs);
          }};
}

// Distributes tensors to files in map order; a file is filled while the next tensor fits.
std::vector<std::vector<const Whole*>> shards_of(const std::vector<Whole>& wholes, Bytes most) {
  std::vector<std::vector<const Whole*>> shards;
  Bytes held;
  for (const Whole& whole : wholes) {
    const Bytes bytes = bytes_of(whole.dtype, whole.shape);
    if (shards.empty() || held + bytes > most) {
      shards.emplace_back();
      held = Bytes();
    }
    shards.back().push_back(&whole);
    held += bytes;
  }
  return shards;
}

}  // namespace

Result<ExportedFiles> export_weights(const ParameterSource& from, const NameMap& map, Store& to,
                                     const ExportOptions& options) {
  const std::vector<Whole> wholes = wholes_of(map, options);
  const std::vector<std::vector<const Whole*>> shards = shards_of(wholes, options.shard);
  const std::map<std::string, std::string> metadata = {{"format", "pt"}};
  ExportedFiles exported;
  std::map<std::string, std::string> places;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string file = shards.size() == 1 ? std::string("model.safetensors")
                                                : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    std::vector<SafetensorsSource> sources;
    for (const Whole* whole : shards[i]) {
      sources.push_back(source_of(*whole, from));
      places.emplace(whole->name, file);
      exported.bytes += bytes_of(whole->dtype, whole->shape);
      ++exported.tensors;
    }
    TRY(checkpoint::write_safetensors(to, file, std::move(sources), metadata));
    exported.files.push_back(file);
  }
  if (shards.size() > 1) {
    Node weight_map = Node::map();
    for (const auto& [name, file] : places) weight_map.set(name, file);
    const Node index = Node::map(
        {{"metadata", Node::map({{"total_size", exported.bytes.count()}})}, {"weight_map", std::move(weight_map)}});
    TRY(write_whole(to, "model.safetensors.index.json", to_json(index, 2) + "\n"));
    exported.files.emplace_back("model.safetensors.index.json");
  }
  return exported;
}

}  // namespace systole

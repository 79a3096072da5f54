#pragma once
// Exports parameters as safetensors in Hugging Face's layout: the inverse of import.h.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "execute/weights/name_map.h"
#include "ground/store/store.h"
#include "ground/tensor/dtype.h"

namespace systole {

// A source of parameters: dtype, row-major bytes and shape, by name.
struct ParameterSource {
  std::function<Result<DType>(const std::string& name)> dtype;
  std::function<Status(const std::string& name, const Shape& shape, std::span<std::byte> into)> read;
  std::function<Result<Shape>(const std::string& name)> shape;
};

struct ExportOptions {
  Bytes shard = Bytes(5'000'000'000);        // most bytes per file, unless one tensor is larger
  std::map<std::string, DType> dtypes = {};  // of HF tensors; others are written as f32
};

struct ExportedFiles {
  std::vector<std::string> files;  // with the index
  Bytes bytes;                     // of all tensors
  int tensors = 0;
};

// Writes model.safetensors, or model-00001-of-0000N.safetensors and their index, each whole or absent. Holds one HF
// tensor and one of ours at a time.
// Errors: those of the source; no_space, io.
Result<ExportedFiles> export_weights(const ParameterSource& from, const NameMap& map, Store& to,
                                     const ExportOptions& options);

}  // namespace systole

#pragma once
// The safetensors of a Hugging Face model: model.safetensors, or the files that model.safetensors.index.json names
// ({"weight_map": {tensor: file}}). Files of strangers: names are checked before they are opened, every tensor must
// stand in the file that the index says and in no other.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/checkpoint/safetensors.h"
#include "ground/base/hash.h"
#include "ground/base/result.h"
#include "ground/store/store.h"

namespace systole {

struct WeightTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::size_t file = 0;
};

// Reads only; any number of threads. Borrows the store.
class WeightFiles {
 public:
  // `folder` inside the store, "" is its root. Errors: not_found (neither file; a file of the index), corrupt,
  // unsupported (a dtype), io.
  static Result<WeightFiles> open(Store& store, const std::string& folder);

  const std::map<std::string, WeightTensor>& tensors() const { return tensors_; }
  std::vector<std::string> names() const;

  // Errors: as SafetensorsFile::read_elements.
  Status read_elements(const std::string& name, std::int64_t first, std::span<std::byte> into) const;
  // Of all files' names and bytes, index and config.json included; reads them all. Errors: io.
  Result<Hash128> hash() const;

 private:
  Status add(Store& store, const std::string& folder, const std::string& file);

  Store* store_ = nullptr;
  std::vector<std::string> paths_, others_;  // of the safetensors; of what stands beside them
  std::vector<checkpoint::SafetensorsFile> files_;
  std::map<std::string, WeightTensor> tensors_;
};

// "folder/name", or "name" in the root.
std::string in_folder(const std::string& folder, const std::string& name);

}  // namespace systole

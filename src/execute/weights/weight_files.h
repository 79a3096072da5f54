#pragma once
// The safetensors files of a Hugging Face model: model.safetensors, or the files of model.safetensors.index.json
// ({"weight_map": {tensor: file}}). The files are untrusted: names are checked before they are opened, and every tensor
// must be in the file that the index names and in no other. Or the tensors of a file in another format.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/checkpoint/safetensors.h"
#include "ground/base/hash.h"
#include "ground/base/result.h"
#include "ground/store/store.h"
#include "ground/tensor/stored_rows.h"

namespace systole {

// The weights of a packed folder (packed_folder.h), which no WeightFiles reads.
inline constexpr const char* kPackedWeights = "packed.safetensors";

struct WeightTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::size_t file = 0;
};

// Reads the tensors of a file that is no safetensors file. Thread-safe.
class TensorReader {
 public:
  virtual ~TensorReader() = default;
  // As SafetensorsFile::read_elements. REQUIRES: the elements are whole rows.
  virtual Status read_elements(const std::string& name, std::int64_t first, std::span<std::byte> into) const = 0;
  // The rows of a matrix, as WeightFiles::rows.
  virtual StoredRows rows(const std::string& name) const = 0;
};

// Read-only; thread-safe. Borrows the store.
class WeightFiles {
 public:
  // `folder` in the store; "" is its root.
  // Errors: not_found (neither file exists; a file of the index), corrupt, unsupported (a dtype), io.
  static Result<WeightFiles> open(Store& store, const std::string& folder);
  // The tensors of the file `path`, as `reader` reads them.
  WeightFiles(Store& store, std::string path, std::map<std::string, WeightTensor> tensors,
              std::shared_ptr<const TensorReader> reader);
  WeightFiles() = default;

  const std::map<std::string, WeightTensor>& tensors() const { return tensors_; }
  std::vector<std::string> names() const;

  // Errors: as SafetensorsFile::read_elements.
  Status read_elements(const std::string& name, std::int64_t first, std::span<std::byte> into) const;
  // The rows of a matrix; these files must outlive them. REQUIRES: it has two dims, and its type is f32, bf16 or f16.
  StoredRows rows(const std::string& name) const;
  // Hash of the names and bytes of all files, with index and config.json; reads them all. Errors: io.
  Result<Hash128> hash() const;

 private:
  Status add(Store& store, const std::string& folder, const std::string& file);

  Store* store_ = nullptr;
  std::vector<std::string> paths_, others_;  // safetensors files; other files
  std::vector<checkpoint::SafetensorsFile> files_;
  std::map<std::string, WeightTensor> tensors_;
  std::shared_ptr<const TensorReader> reader_;  // null: files_ are read
};

// Numbers of type f32, bf16 or f16 as f32.
void to_f32(DType dtype, std::span<const std::byte> bytes, std::span<float> numbers);

// "folder/name", or "name" in the root.
std::string in_folder(const std::string& folder, const std::string& name);

}  // namespace systole

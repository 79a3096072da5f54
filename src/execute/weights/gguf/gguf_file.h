#pragma once
// Reads GGUF files, the format of llama.cpp: the metadata and the tensors of a model in one file
// (github.com/ggml-org/ggml, docs/gguf.md, versions 2 and 3). Little-endian:
//
//   "GGUF", u32 version, u64 number of tensors, u64 number of metadata values
//   per value    string key, u32 type, value
//   per tensor   string name, u32 ndim, u64 sizes (innermost first), u32 type, u64 offset
//   padding to the alignment (general.alignment, else 32), then the data; offsets count from here
//
// A string is a u64 length and its bytes, an array a u32 type, a u64 count and its elements.
//
// A file is untrusted: every count, length and offset is checked before it is used; names are unique, and no byte is of
// two tensors. The file is read in pieces, not mapped: a file that is cut short meanwhile gives an error, and nothing
// of it stays resident.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "execute/weights/gguf/gguf_blocks.h"
#include "ground/base/result.h"
#include "ground/store/store.h"
#include "ground/tensor/shape.h"

namespace systole {

// Arrays of numbers are doubles; arrays of arrays are checked, and not kept.
using GgufValue = std::variant<std::monostate, std::int64_t, std::uint64_t, float, double, bool, std::string,
                               std::vector<std::string>, std::vector<double>>;

struct GgufTensor {
  std::string name;
  Shape shape;  // outermost first, as elsewhere; a row of shape.back() elements is whole blocks
  const GgufBlock* block = nullptr;
  std::int64_t begin = 0, end = 0;  // bytes from the start of the file
};

inline constexpr std::int64_t kGgufHeaderLimit = std::int64_t{64} << 20;  // bytes before the data
inline constexpr std::uint64_t kGgufMostItems = 4'000'000;                // of an array

// An open file. Read-only; thread-safe. Borrows the store.
class GgufFile {
 public:
  // Errors: not_found; corrupt (any violation of the format, with the byte); unsupported (a version, or the type of a
  // tensor, by name); invalid (a pointer of git-lfs); io.
  static Result<GgufFile> open(Store& store, const std::string& path);

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;  // null if absent
  bool has(const std::string& key) const { return values_.contains(key); }

  // The value of a key. Errors: corrupt if it is absent, of another type or out of range.
  Result<std::int64_t> integer(const std::string& key, std::int64_t lowest) const;
  Result<std::int64_t> integer(const std::string& key, std::int64_t lowest, std::int64_t otherwise) const;
  Result<float> number(const std::string& key) const;
  Result<bool> flag(const std::string& key, bool otherwise) const;
  Result<std::string> text(const std::string& key) const;
  Result<const std::vector<std::string>*> texts(const std::string& key) const;
  Result<const std::vector<double>*> numbers(const std::string& key) const;

  // Fills `into` with the elements from `first` on, in the type block->dtype. Errors: io; corrupt (the file was cut).
  // REQUIRES: the elements are whole blocks of the tensor.
  Status read_elements(const GgufTensor& tensor, std::int64_t first, std::span<std::byte> into) const;

  // The same elements as they are stored. REQUIRES: as read_elements; `into`: as many bytes as the blocks have.
  Status read_blocks(const GgufTensor& tensor, std::int64_t first, std::span<std::byte> into) const;

  // The file without its metadata, which may take megabytes.
  GgufFile without_values() &&;

 private:
  GgufFile(Store& store, std::string path) : store_(&store), path_(std::move(path)) {}
  template <typename T>
  Result<const T*> value(const std::string& key, const char* what) const;

  Store* store_;
  std::string path_;
  std::map<std::string, GgufValue> values_;
  std::vector<GgufTensor> tensors_;  // in the order of the file

  friend class GgufParser;
};

}  // namespace systole

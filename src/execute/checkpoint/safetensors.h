#pragma once
// Reading and writing safetensors files, the exchange format of models.
// Format (github.com/huggingface/safetensors, README "Format", version 0.5, 2025):
//
//   8 bytes   N, little-endian: size of the header
//   N bytes   JSON: {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[begin,end]}, …,
//             "__metadata__":{"key":"text", …}}; begins with '{', may end in spaces
//   the rest  the tensors, dense, row-major, little-endian; offsets count from here, leave no gap and do not overlap
//
// We write tensors by dtype, larger elements first, then by name, and pad the header with spaces to 8 bytes, so every
// tensor is aligned to its element size. The reference implementation writes the same bytes for the same tensors.
// A file is untrusted: every number in it is checked before it is used.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/store/store.h"
#include "ground/tensor/dtype.h"
#include "ground/tensor/shape.h"

namespace systole::checkpoint {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t begin = 0, end = 0;  // bytes from the start of the data
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;        // in the order of their data
  std::map<std::string, std::string> metadata;  // "__metadata__"
  std::int64_t data_start = 0;                  // bytes from the start of the file

  const SafetensorsEntry* find(std::string_view name) const;  // null when absent
};

// Parses the header of a file of `file_bytes` bytes. `head`: the first bytes of the file, at least the whole header.
// Errors: corrupt (any violation of the format, naming the tensor), unsupported (an unknown dtype, by name).
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> head, std::int64_t file_bytes,
                                                   std::string_view file);

// An open file. Read-only; thread-safe. Borrows the store.
class SafetensorsFile {
 public:
  // Errors: not_found, corrupt, unsupported, io.
  static Result<SafetensorsFile> open(Store& store, std::string path);

  const SafetensorsHeader& header() const { return *header_; }

  // Fills `into` with a whole tensor, or with the elements from `first` on that fit `into`, row-major.
  // Errors: not_found (with the nearest name), invalid (`into` has another size, or leaves the tensor), io.
  Status read(std::string_view name, std::span<std::byte> into) const;
  Status read_elements(std::string_view name, std::int64_t first, std::span<std::byte> into) const;

 private:
  SafetensorsFile(Store& store, std::string path, SafetensorsHeader header);
  Store* store_;
  std::string path_;
  std::shared_ptr<const SafetensorsHeader> header_;
};

// A tensor to write. `produce` passes its bytes, row-major, to the given function, in slices of any size.
struct SafetensorsSource {
  using Take = std::function<Status(std::span<const std::byte>)>;
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::function<Status(const Take&)> produce;

  static SafetensorsSource of(std::string name, DType dtype, Shape shape, std::span<const std::byte> bytes);
};

// Writes the file atomically. Errors: invalid (a duplicate name, "__metadata__" as a name, a tensor whose `produce`
// gives more or fewer bytes than its shape), no_space, io.
Status write_safetensors(Store& store, std::string_view path, std::vector<SafetensorsSource> tensors,
                         const std::map<std::string, std::string>& metadata);

}  // namespace systole::checkpoint

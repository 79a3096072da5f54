// Any bytes as a safetensors file: as they come, and as the header of a file with some data behind it. What reads must
// lie inside the file, cover it exactly, and agree with its dtypes and shapes.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "execute/checkpoint/safetensors.h"

using namespace systole;
using namespace systole::checkpoint;

namespace {

void read(std::span<const std::byte> file, std::int64_t file_bytes) {
  const auto header = parse_safetensors_header(file, file_bytes, "fuzz");
  if (!header) return;
  std::int64_t at = 0;
  for (const SafetensorsEntry& tensor : header->tensors) {
    if (tensor.begin != at || tensor.end < tensor.begin) std::abort();
    if (bytes_of(tensor.dtype, tensor.shape).count() != tensor.end - tensor.begin) std::abort();
    if (header->find(tensor.name) == nullptr) std::abort();
    at = tensor.end;
  }
  if (header->data_start + at != file_bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read(bytes, static_cast<std::int64_t>(size));
  std::vector<std::byte> file(8);
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(size >> (8 * i) & 0xff);
  file.insert(file.end(), bytes.begin(), bytes.end());
  for (const std::int64_t data_bytes : {0, 4, 24}) read(file, static_cast<std::int64_t>(file.size()) + data_bytes);
  return 0;
}

#pragma once
// Parses hardware requests:
//
//   h100:64                  this many chips, in machines that have them
//   h100:64@a3-highgpu-8g    in this machine type
//   a3-highgpu-8g:8          this many machines
//   v5p:4x4x4  v5p-128       a slice by shape or name, v5p:64 by chips; followed by :2, two slices
//   8 x a3-highgpu-8g        the count in front, as plans print it

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/catalog/catalog.h"
#include "ground/catalog/machine_type.h"
#include "ground/catalog/tpu_slice.h"

namespace systole {

// Borrowed parts live as long as the catalog and its tables.
struct RequestedHardware {
  const CatalogEntry* chip = nullptr;
  std::int64_t chips = 0;  // in total
  // Alternatives: any one of these types. Empty: the catalog has none for the chip, or it is a slice.
  std::vector<const MachineType*> types;
  std::int64_t machines = 0;
  std::optional<TpuSlice> slice;
  std::int64_t slices = 1;
};

// `key`: the prefix of messages, "--on". Errors: not_found: no such accelerator, machine or slice, with the nearest
// names; invalid: an unavailable number or shape, with the nearest.
Result<RequestedHardware> parse_hardware(const Catalog& catalog, std::span<const MachineType> machines,
                                         std::span<const TpuSlice> slices, std::string_view words,
                                         std::string_view key);

// The multiples of `each` around `count`: "8 or 16".
std::string nearest_multiples(std::int64_t count, std::int64_t each);

}  // namespace systole

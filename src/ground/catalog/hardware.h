#pragma once
// Hardware by the words that people ask for it with:
//
//   h100:64                  so many chips, in machines that hold them
//   h100:64@a3-highgpu-8g    in this machine
//   a3-highgpu-8g:8          so many machines
//   v5p:4x4x4  v5p-128       a slice by its shape or its name, v5p:64 by its chips; with :2 behind it two
//   8 x a3-highgpu-8g        the number in front, as plans print it

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

// What is borrowed lives as long as the catalog and its tables.
struct AskedHardware {
  const CatalogEntry* chip = nullptr;
  std::int64_t chips = 0;  // in all
  // In any one of these types so many; empty: the catalog knows none for the chip, or it is a slice.
  std::vector<const MachineType*> types;
  std::int64_t machines = 0;
  std::optional<TpuSlice> slice;
  std::int64_t slices = 1;
};

// `key`: what stands before the words in messages, "--on". Errors: not_found: no such accelerator, machine or slice,
// with the nearest names; invalid: a number or shape that cannot be had, with the nearest.
Result<AskedHardware> asked_hardware(const Catalog& catalog, std::span<const MachineType> machines,
                                     std::span<const TpuSlice> slices, std::string_view words, std::string_view key);

// The multiples of `each` beside `count`: "8 or 16".
std::string nearest_multiples(std::int64_t count, std::int64_t each);

}  // namespace systole

#pragma once
// The hardware that a program is proved for: a number of chips of one kind, which need not be present. Names are those
// of cloud providers:
//
//   v5e:4x4   v5p:4x4x4   v6e:16x16   tpu7x:2x2x1      a TPU slice by the numbers of chips along its torus
//   h100:8    h200:16     b200:2x8                     GPUs, of one host or of several full ones (hosts x GPUs)
//
// Every figure comes from the catalog's entries of kind tpu and gpu (data/catalog/chips.yaml).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/units.h"
#include "ground/catalog/catalog.h"
#include "ground/pjrt/compile_options.h"
#include "ground/pjrt/named_value.h"
#include "predict/prove/slice_network.h"

namespace systole::prove {

struct Slice {
  std::string name, chip;  // "v6e:16x16", "v6e"
  std::string plugin;      // the compiler: a name of ground/pjrt/places.h, "tpu" or "gpu"
  std::string topology;    // with `options`, what pjrt::Topology::create takes
  std::vector<pjrt::NamedValue> options;
  pjrt::CompilerFlags flags;  // defaults for the chip's compiler
  std::int64_t chips = 0, devices = 0;

  // Per device, which may be half a chip.
  Bytes memory;  // nominal; the compiler keeps some of it for itself
  BytesPerSecond bandwidth{};
  FlopRate peak{};                      // dense bf16
  double cycles_per_second = 0;         // clock of a TPU compiler's cycles
  std::optional<SliceNetwork> network;  // TPUs only
  std::string example;                  // "v5e:2x2": an existing slice of this chip
  std::string date;                     // newest date of the chip's facts
};

// The catalog's flags of a chip, in the types that its compiler takes. Errors: invalid: a number out of range.
Result<pjrt::CompilerFlags> compiler_flags(const CatalogEntry& chip);

// Errors: not_found: no such chip, with the known ones; unsupported: a chip without a known compiler; invalid: more
// chips than one slice can have, no numbers, too many of them.
Result<Slice> parse_slice(std::string_view text, const Catalog& catalog);

// Also accepts common names: v5e-8 and v5litepod:2x4 are v5e:2x4. Errors: also those of find_tpu_slice and of the
// catalog's tables.
Result<Slice> find_slice(const std::string& called, const Catalog& catalog);

// "v5e:2x2", …: one slice of each chip, for hints.
std::vector<std::string> example_slices(const Catalog& catalog);

}  // namespace systole::prove

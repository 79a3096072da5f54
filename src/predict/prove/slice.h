#pragma once
// What a program is proved for: so many chips of a kind, which need not be there. Written as people rent them:
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
  std::string plugin;      // which compiler: a name of ground/pjrt/places.h, "tpu" or "gpu"
  std::string topology;    // with `options`, what pjrt::Topology::create takes
  std::vector<pjrt::NamedValue> options;
  pjrt::CompilerFlags flags;  // that the chip's compiler is given where nobody says otherwise
  std::int64_t chips = 0, devices = 0;

  // Of one device, which may be half a chip.
  Bytes memory;  // as it is sold; the compiler keeps some of it for itself
  BytesPerSecond bandwidth{};
  FlopRate peak{};                      // dense bf16
  double cycles_per_second = 0;         // in which a TPU's compiler counts
  std::optional<SliceNetwork> network;  // a TPU's
  std::string example;                  // "v5e:2x2": a slice of this chip's that there is
  std::string date;                     // the newest of the chip's facts
};

// The catalog's flags of a chip, as its compiler takes them. Errors: invalid: a number that is out of range.
Result<pjrt::CompilerFlags> compiler_flags(const CatalogEntry& chip);

// Errors: not_found: no such chip, with those that are known; unsupported: one that no compiler is known of; invalid:
// more chips than are built into one slice, no numbers, too many of them.
Result<Slice> parse_slice(std::string_view text, const Catalog& catalog);

// "v4", …, "h100": those that slices are made of.
std::vector<std::string> known_chips(const Catalog& catalog);

// "v5e:2x2", …, one of each chip: for hints.
std::vector<std::string> example_slices(const Catalog& catalog);

}  // namespace systole::prove

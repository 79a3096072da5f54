#pragma once
// Imports weights in Hugging Face's layout directly into parameters in the arena.
//
// A tensor is read in pieces of 256 KiB, or one row if that is larger. Each piece is transposed, split into columns and
// converted on its way to its place. So memory beside the arena is at most kImportBytes (for rows of up to 65,536
// numbers), whatever the tensor's size. On a mesh, a device takes only its part of a sharded parameter, and skips rows
// of which it holds nothing.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/box.h"
#include "execute/weights/name_map.h"
#include "execute/weights/weight_files.h"

namespace systole {

constexpr Bytes kImportBytes = kMiB;  // upper bound on buffers of an import

// A logical parameter in memory ("blocks.3.attn.q"); on a mesh, the part that a device holds.
struct ParameterPlace {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;                 // of the whole parameter
  std::span<std::byte> bytes;  // row-major, of the whole or of `part`
  struct Part {
    checkpoint::Box box;   // box in the whole; may be empty
    checkpoint::Box held;  // box that `bytes` covers: `box` plus padding, which stays unchanged
  };
  std::optional<Part> part = {};
};

// The map with the names that the files use: with the family's prefix, or without.
NameMap fitting(NameMap map, const WeightFiles& files);

// Checks that the files hold all tensors of the map, with the required shapes and types.
// Errors: invalid or not_found, naming each tensor that is missing (with the nearest existing names), extra, or of
// wrong shape or type; `others` hold all but the first.
Status check_weights(const WeightFiles& files, const NameMap& map);

// Fills the parameters of the map; others (adapters) stay unchanged. f32, bf16 and f16 are converted to the parameter's
// type, exactly if that is wider.
// Errors: as check_weights; invalid if a parameter of the map is not among `places` or has another size, or a tensor
// that must copy the embedding differs from it; those of reading.
// `some`: only the parameters among `places`, which may be fewer than the map's, by several threads; each has buffers
// of its own.
// REQUIRES: a part's box lies within the shape and within `held`.
Status import_weights(const WeightFiles& files, const NameMap& map, std::span<const ParameterPlace> places,
                      bool some = false);

}  // namespace systole

#pragma once
// Weights of Hugging Face's layout into parameters of ours, in their place in the arena.
//
// A tensor is read in parts of 256 KiB, or a row where that is more, and each part goes where it belongs: turned, cut
// into columns and converted on the way. So beside the arena there is never more than kImportBytes (for rows of up to
// 65,536 numbers), whatever the size of a tensor. A device of a mesh that holds a part of a parameter takes that, and
// leaves rows unread of which it holds nothing.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/box.h"
#include "execute/weights/name_map.h"
#include "execute/weights/weight_files.h"

namespace systole {

constexpr Bytes kImportBytes = kMiB;  // that reading holds, at most

// A logical parameter where it lies: "blocks.3.attn.q"; of a mesh, the part of it that a device holds.
struct ParameterPlace {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;                 // of the whole
  std::span<std::byte> bytes;  // row-major; of the whole, or of `part`
  struct Part {
    checkpoint::Box box;   // of the whole; may be empty
    checkpoint::Box held;  // that `bytes` covers, longer where it is filled up: what is beyond the box is left alone
  };
  std::optional<Part> part = {};
};

// The map whose names the files have: with the family's prefix, or without.
NameMap fitting(NameMap map, const WeightFiles& files);

// Whether the files hold what the map asks for, of the shapes and types that it must have. Errors: invalid or
// not_found, naming each tensor that is missing (with the nearest names there are), extra, misshapen or mistyped;
// `others` hold all but the first.
Status check_weights(const WeightFiles& files, const NameMap& map);

// Fills the parameters that the map knows; what it does not know (adapters) stays as it is. f32, bf16 and f16 are
// converted to the parameter's type, exactly where that is wider. Errors: as check_weights; invalid when a parameter of
// the map is not among `places` or has another size, or what must be a copy of the embedding is none; those of reading.
// REQUIRES: a part's box lies in the shape and in what is held.
Status import_weights(const WeightFiles& files, const NameMap& map, std::span<const ParameterPlace> places);

}  // namespace systole

#pragma once
// Is this checkpoint of this model? Names the tensors that are missing, extra or of another type, with near names.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/checkpoint/manifest.h"

namespace systole::checkpoint {

struct Wanted {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  Role role = Role::parameter;
};

struct Mismatch {
  enum class Kind { missing, extra, shape, dtype };
  Kind kind;
  std::string name;
  std::string text;  // "blocks.3.attn.q is f32[64, 64] in the checkpoint, f32[128, 128] in the model"
};

// What differs between the checkpoint and the tensors that a model asks for. A tensor of the checkpoint is extra only
// when `wanted` asks for some tensor of its role: reading parameters alone leaves the optimizer's state aside.
std::vector<Mismatch> compare_names(const Manifest& manifest, std::span<const Wanted> wanted);

// Errors: invalid, with the first differences and the count of all; `others` holds one error for each of the first
// hundred.
Status check_model(const Manifest& manifest, std::span<const Wanted> wanted);

// "did you mean 'a' or 'b'?", or "" when nothing is near.
std::string nearest_hint(const Manifest& manifest, std::string_view name);

}  // namespace systole::checkpoint

#pragma once
// Checks that a checkpoint fits a model. Lists tensors that are missing, extra or of another type, with similar names.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/checkpoint/manifest.h"

namespace systole::checkpoint {

struct RequestedTensor {
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

// The differences between the checkpoint and the tensors that a model asks for. A tensor of the checkpoint is extra
// only if `wanted` has some tensor of its role: reading parameters alone ignores the optimizer's state.
std::vector<Mismatch> compare_names(const Manifest& manifest, std::span<const RequestedTensor> wanted);

// Errors: invalid, with the first differences and the total count; `others` holds one error for each of the first
// hundred.
Status check_model(const Manifest& manifest, std::span<const RequestedTensor> wanted);

// "did you mean 'a' or 'b'?", or "" if no name is similar.
std::string nearest_hint(const Manifest& manifest, std::string_view name);

}  // namespace systole::checkpoint

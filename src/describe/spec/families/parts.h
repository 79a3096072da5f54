#pragma once
// Choices shared by several families, and the tasks of models.

namespace systole {

struct ModelFamily;  // families.h
struct Schema;       // describe/spec/schema.h

enum class Norm { layer, rms };
enum class Activation { gelu, gelu_tanh, relu, relu2, silu, tanh, sigmoid };
// Position encoding: a learned vector, rotated queries and keys, or none.
enum class Position { learned, rotary, none };
enum class Loss { cross_entropy, squared_error };

// The task of a model determines the inputs of its graphs beside parameters:
//   language        tokens, labels (-1: ignored), segments (0: padding), positions, each i32[batch, seq]
//   masked          tokens with some of them masked, labels (-1: not predicted), segments, positions, types (of a
//                   sentence: 0, 1, …), each i32[batch, seq]
//   pairs           tokens and segments i32[batch, seq]; target_tokens, labels and target_segments i32[batch, target]:
//                   a target attends to the tokens of its own segment
//   regression      x f32[batch, inputs], y f32[batch, outputs]; where rows may be empty, filled f32[batch] (1; 0: an
//                   empty row, ignored)
//   classification  x f32[batch, inputs], labels i32[batch] (-1: ignored)
enum class Task { language, masked, pairs, regression, classification };

inline constexpr const char* kFilled = "filled";

}  // namespace systole

#pragma once
// Rows in zigzag order, for training over the mesh axis `context`, which cuts rows of tokens into parts. A row is 2n
// chunks; part i of n is chunk i and then chunk 2n - 1 - i. Under a causal mask a token's work grows with its place, so
// that a chunk from each end makes all parts' work the same (Grattafiori et al., arXiv:2407.21783, section 3.3.2).
//
//   n = 2, a row of 8    places 0 1 6 7 | 2 3 4 5
//
// Whoever writes rows writes them in this order, with their positions, segments and labels; the few ops that tell
// places by where they lie in a row are told of the order by passes/zigzag.cc.

#include <cstdint>

namespace systole {

constexpr const char* kContextAxis = "context";  // of a mesh

// How keys and values of other devices along it come to a device (ops/attention_zigzag.h).
enum class ContextKeys { all_gather, ring };

// The place in its row of what lies at `index`. REQUIRES: 2 parts divides the row's length.
constexpr std::int64_t zigzag_place(std::int64_t index, std::int64_t length, std::int64_t parts) {
  const std::int64_t chunk = length / (2 * parts), part = index / (2 * chunk), at = index % (2 * chunk);
  return at < chunk ? part * chunk + at : (2 * parts - 1 - part) * chunk + at - chunk;
}

}  // namespace systole

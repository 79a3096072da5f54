#pragma once
// Zigzag order of rows, for context parallelism: the mesh axis `context` shards rows of tokens into n parts. A row is
// 2n chunks; part i is chunk i followed by chunk 2n - 1 - i. Under a causal mask a token's work grows with its
// position; one chunk from each end gives all parts the same work (Grattafiori et al., arXiv:2407.21783, section
// 3.3.2).
//
//   n = 2, a row of 8    places 0 1 6 7 | 2 3 4 5
//
// The writer of rows writes them in this order, with their positions, segments and labels. passes/zigzag.cc tells the
// order to the few ops that derive positions from the index in a row.

#include <cstdint>

namespace systole {

constexpr const char* kContextAxis = "context";  // axis of the mesh

// How the keys and values of other devices reach a device (ops/attention_zigzag.h).
enum class ContextKeys { all_gather, ring };

// The position in its row of the token at `index`. REQUIRES: 2 parts divides the row's length.
constexpr std::int64_t zigzag_place(std::int64_t index, std::int64_t length, std::int64_t parts) {
  const std::int64_t chunk = length / (2 * parts), part = index / (2 * chunk), at = index % (2 * chunk);
  return at < chunk ? part * chunk + at : (2 * parts - 1 - part) * chunk + at - chunk;
}

}  // namespace systole

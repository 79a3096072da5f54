#pragma once
// Context parallelism for causal attention: what one device computes when rows lie in zigzag order
// (describe/ops/zigzag.h) and are sharded over an axis of n devices. A device holds the queries of two chunks of the
// row and attends to all keys. Private to this folder.
//
// The device processes keys chunk by chunk, so that its scores and sums do not grow with n. Its own chunks are e
// (early) and l (late): e|e and l|l are causal, l|e is whole. For a device before it, both e and l see that device's
// early chunk; for a device behind it, l sees both chunks. Each other device thus costs two whole pairs of chunks.
// Which ones is data: take_part selects chunks by index. So every device runs the same graph with the same work. The
// softmax is computed online (Milakov and Gimelshein, arXiv:1805.02867).
//
// In step s a device meets the device s before it, cyclically. Keys of other devices arrive in one of two ways:
//
//   gather  all_gather first; dk and dv are summed over the axis. Memory for keys grows with n
//   ring    each step's keys come from the neighbour (Liu et al., "Ring Attention", arXiv:2310.01889): while this step
//           computes, a permute sends the current keys on and receives the next, so keys of two steps are held. The
//           gradient sends the keys round again. The sum of a chunk's dk and dv starts one device behind its owner and
//           travels the same way, gaining one term per step. The last permute brings it home, where the owner adds its
//           own term: as many bytes as a reduce_scatter in the statistics' type, rounded once
//
//   n = 3, chunks 0 5 | 1 4 | 2 3, pairs query|key of each step; b: the device met is behind
//            device 0             device 1             device 2
//   step 0   0|0 5|5 5|0          1|1 4|4 4|1          2|2 3|3 3|2          2|2: causal, 3|2: whole
//   step 1   2 3: 5|2 5|3 b       0 5: 4|0 1|0         1 4: 3|1 2|1
//   step 2   1 4: 5|1 5|4 b       2 3: 4|2 4|3 b       0 5: 3|0 2|0

#include <string_view>

#include "describe/ir/op.h"

namespace systole::ops {

// Inputs: those of attention or attention_grad, then "offset"; results: theirs. Keys and values, their segments and
// their gradients are whole, or this device's shard with the attribute `ring`.
// Errors: Failure(unsupported) when `parts` differs from the parts of the zigzag order.
Graph zigzag_attention(const OpCall& local, std::string_view axis, std::int64_t parts);
Graph zigzag_attention_grad(const OpCall& local, std::string_view axis, std::int64_t parts);

}  // namespace systole::ops

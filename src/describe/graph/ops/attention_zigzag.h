#pragma once
// What a device computes of attention whose rows lie in zigzag order (describe/graph/zigzag.h) and are cut over an axis
// of n devices: its own queries, two chunks of the row, against all keys. Private to this folder.
//
// The keys of all devices are gathered before. The device goes through them chunk by chunk, so that what it holds of
// scores and sums does not grow with n: with itself, its chunks e (early) and l (late) see e|e and l|l causally and l|e
// whole; of a device before it, both see the early chunk; of one behind it, l sees both. That is two whole pairs of
// chunks for each other device, and which ones is data: a chunk's index, taken by take_part. So every device runs the
// same graph, and all their work is the same. The softmax is carried along (Milakov and Gimelshein, arXiv:1805.02867;
// Liu et al., "Ring Attention", arXiv:2310.01889).

#include <string_view>

#include "describe/graph/op.h"

namespace systole::ops {

// Inputs and results are of attention and attention_grad; "offset" behind them. dk and dv are summed over the axis.
// Errors: Failure(unsupported) when the rows are cut into other parts than their order has.
Graph zigzag_attention(const OpCall& local, std::string_view axis, std::int64_t parts);
Graph zigzag_attention_grad(const OpCall& local, std::string_view axis, std::int64_t parts);

}  // namespace systole::ops

#pragma once
// What a device computes of attention whose rows lie in zigzag order (describe/graph/zigzag.h) and are cut over an axis
// of n devices: its own queries, two chunks of the row, against all keys. Private to this folder.
//
// The device goes through the keys chunk by chunk, so that what it holds of scores and sums does not grow with n: with
// itself, its chunks e (early) and l (late) see e|e and l|l causally and l|e whole; of a device before it, both see the
// early chunk; of one behind it, l sees both. That is two whole pairs of chunks for each other device, and which ones
// is data: a chunk's index, taken by take_part. So every device runs the same graph, and all their work is the same.
// The softmax is carried along (Milakov and Gimelshein, arXiv:1805.02867).
//
// In step s it meets the device s before it, round the end. The keys of others come in one of two ways:
//
//   gather  all are gathered before; dk and dv are summed over the axis. What a device holds of them grows with n
//   ring    each step's come from the neighbour (Liu et al., "Ring Attention", arXiv:2310.01889): a permute sends those
//           that are here on and gets the next ones while this step computes, so that keys of two steps are held. The
//           gradient sends them round again. The sum of a chunk's dk and dv begins one device behind its own and goes
//           the same way, gathering a term a step; the last permute brings it home, where the term of its own device
//           is added: as many bytes as a reduce_scatter in the statistics' type, and rounded once
//
//   n = 3, chunks 0 5 | 1 4 | 2 3, pairs query|key of each step; behind: b
//            device 0             device 1             device 2
//   step 0   0|0 5|5 5|0          1|1 4|4 4|1          2|2 3|3 3|2          2|2: causal, 3|2: whole
//   step 1   2 3: 5|2 5|3 b       0 5: 4|0 1|0         1 4: 3|1 2|1
//   step 2   1 4: 5|1 5|4 b       2 3: 4|2 4|3 b       0 5: 3|0 2|0

#include <string_view>

#include "describe/graph/op.h"

namespace systole::ops {

// Inputs and results are of attention and attention_grad; "offset" behind them. Keys and what is of them are whole, and
// with the attribute `ring` this device's.
// Errors: Failure(unsupported) when the rows are cut into other parts than their order has.
Graph zigzag_attention(const OpCall& local, std::string_view axis, std::int64_t parts);
Graph zigzag_attention_grad(const OpCall& local, std::string_view axis, std::int64_t parts);

}  // namespace systole::ops

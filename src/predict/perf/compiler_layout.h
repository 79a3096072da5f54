#pragma once
// How a vendor's compiler (XLA's, for TPUs and GPUs) lays out a device's memory: the tiles that values are padded to,
// and the habits that were seen in the buffers that compilers wrote down (docs/concepts/memory.md).

#include <cstdint>
#include <string_view>

#include "describe/graph/ir.h"

namespace systole {

// Bytes are of buffers, not of arithmetic.
struct CompilerLayout {
  std::int64_t sublanes = 1, lanes = 1;  // the two innermost dims are padded to these: a TPU's tile
  std::int64_t alignment = 1;            // of a buffer
  bool hoists_casts = false;             // of stacked parameters: all layers' at once, outside of the loop
  Bytes joins_up_to;                     // of collectives of a kind, which then are one
  bool whole_groups_wait = false;        // a collective of all devices runs beside nothing: a flat torus
  Bytes on_chip;                      // of a TPU's own memory, that a step may take whose temporaries all fit into it
  bool puts_off_head = false;         // the gradient of the head's weights comes after the backward loop
  bool products_read_places = false;  // elementwise operands of products are written first
  bool wide_functions = false;        // exponentials and the like are computed in f32, and kept so for their readers
  bool gathers_outermost = false;     // parts are put end to end along the outermost dim: parameters are transposed
  bool zeros_at_once = false;         // that gradients of all loops begin with, before the first of them
  bool sends_next_round = false;      // a layer's gradients are sent while the next is computed
  double layer_gaps = 0;              // holes in the heap, as a share of what lives within a layer
  double gaps = 0;                    // as a share of all
};
// Errors: Failure(not_found): a compiler that is not known. `plugin`: "tpu", "gpu"; `chip`: "v6e".
CompilerLayout layout_of_compiler(std::string_view plugin, std::string_view chip);

// What a value takes, with the two dims innermost that fill tiles best: the compiler chooses the order of dims.
// `outer`: a dim that is not innermost; -1: any may be.
Bytes padded(const Type& type, const CompilerLayout& layout, int outer = -1);
// Of queries, keys and values: blocks of rows by the head's size, which is innermost.
Bytes padded_heads(const Type& type, const CompilerLayout& layout);

}  // namespace systole

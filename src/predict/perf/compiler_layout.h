#pragma once
// How a vendor's compiler (XLA, for TPUs and GPUs) lays out a device's memory: the tiles that values are padded to, and
// the behaviour that was seen in the buffer assignments of compilers (docs/concepts/memory.md).

#include <cstdint>
#include <string_view>

#include "describe/ir/ir.h"

namespace systole {

// Bytes are buffer sizes.
struct CompilerLayout {
  std::int64_t sublanes = 1, lanes = 1;  // a TPU's tile: the two innermost dims are padded to it
  std::int64_t alignment = 1;            // of a buffer
  bool hoists_casts = false;             // casts stacked parameters of all layers at once, before the loop
  Bytes joins_up_to;                     // collectives of one kind are combined up to this size
  bool whole_groups_wait = false;        // a collective of all devices overlaps nothing: a flat torus
  Bytes on_chip;                         // TPU's own memory: holds a step's temporaries if all of them fit
  bool puts_off_head = false;            // the gradient of the head's weights is computed after the backward loop
  bool products_read_places = false;     // elementwise operands of products are stored first
  bool wide_functions = false;           // exponentials and the like are stored in f32 for their readers
  bool gathers_outermost = false;        // gathers run along the outermost dim: parameters are transposed
  bool zeros_at_once = false;            // the initial zeros of all loops' gradients are written before the first loop
  bool sends_next_round = false;         // a layer's gradients are sent while the next layer is computed
  double layer_gaps = 0;                 // holes in the heap, as a fraction of what lives within a layer
  double gaps = 0;                       // as a fraction of all
};
// Errors: Failure(not_found) for an unknown compiler. `plugin`: "tpu", "gpu"; `chip`: "v6e".
CompilerLayout layout_of_compiler(std::string_view plugin, std::string_view chip);

// Padded size of a value, in the order of dims that pads least; the compiler chooses the order. `outer`: a dim that
// cannot be innermost; -1: none.
Bytes padded(const Type& type, const CompilerLayout& layout, int outer = -1);
// Padded size of queries, keys or values, in which a head's elements are innermost.
Bytes padded_heads(const Type& type, const CompilerLayout& layout);

}  // namespace systole

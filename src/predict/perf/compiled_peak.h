#pragma once
// What a vendor's compiler (XLA's, for TPUs and GPUs) is predicted to need of a device's memory for a step that it sees
// whole, and what for.
//
// The Program plans a place for every value. A compiler does less and more: values that it fuses into their readers
// have no place; others are padded to the tiles of a TPU's registers, are kept twice, or begin to live elsewhere. So
// the step is walked as it will be scheduled, with the places that the compiler makes, and the moment at which most are
// alive is the peak. Each rule below has a cause that was seen in the buffers that compilers wrote down
// (docs/concepts/memory.md); data/xla/matrix.csv has their figures beside these.

#include <string>
#include <vector>

#include "describe/graph/program.h"

namespace systole {

// How a compiler lays out memory. Bytes are of buffers, not of arithmetic.
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

enum class PeakOwner {
  residuals,   // what the backward pass reads: kept by all layers
  parameters,  // copies of parameters: gathered from other devices, or in the type of the products
  gradients,
  loss,       // logits and their gradient
  block,      // inside one layer
  attention,  // of which its operands and results, laid out for it
  step,       // the rest, outside of the loops
};
constexpr int kNumPeakOwners = 7;
const char* name_of(PeakOwner owner);

struct PeakTerm {
  PeakOwner owner;
  Bytes bytes;
};

struct PeakBuffer {  // alive at the peak
  std::string name;
  Type type;
  PeakOwner owner;
  Bytes bytes;
};

struct CompiledPeak {
  Bytes arguments, outputs;     // outputs that are in no argument's place
  Bytes temporaries;            // of the places of all of them
  Bytes gaps;                   // of these between places, where nothing lies at the busiest moment
  Bytes on_chip;                // beside them, in the chip's own memory
  std::vector<PeakTerm> terms;  // of the rest, largest first
  std::vector<PeakBuffer> buffers;
  Bytes needed() const { return arguments + outputs + temporaries; }
};

// `step`: a function of the Program that is compiled as one module, such as kStepFunction of joined().
CompiledPeak compiled_peak(const Program& program, const Function& step, const CompilerLayout& layout);

}  // namespace systole

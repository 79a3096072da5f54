#pragma once
// The buffers that a vendor's compiler allocates for a step compiled as one module, and the lifetime of each.
//
// The Program plans memory for every value. A compiler differs: a value that is fused into its readers has no buffer;
// others are padded to the tiles of a TPU's registers, stored twice, or become live earlier or later. So the walk
// follows the compiler's expected schedule. Each rule has a cause that was seen in the buffer assignments of compilers
// (docs/concepts/memory.md).

#include <string>
#include <vector>

#include "describe/program/program.h"
#include "predict/perf/compiler_layout.h"

namespace systole {

enum class PeakOwner {
  residuals,   // saved for the backward pass, by all layers
  parameters,  // copies of parameters: gathered from other devices, or cast for products
  gradients,
  loss,       // logits and their gradient
  block,      // inside one layer
  attention,  // its operands and results, laid out for it
  step,       // all else, outside the loops
};
constexpr int kNumPeakOwners = 7;
const char* name_of(PeakOwner owner);

struct CompiledBuffer {
  std::string name;
  Type type;
  Bytes bytes;
  PeakOwner owner;
  int depth = 0;         // number of enclosing loops
  int from = 0, to = 0;  // lifetime in moments of the walk, both ends included
};

struct CompiledBuffers {
  Bytes arguments, outputs;  // outputs that alias no argument
  std::vector<CompiledBuffer> temporaries;
  int end = 0;  // the last moment
};

// `step`: a function of the Program that is compiled as one module, such as kStepFunction of fused_step().
CompiledBuffers compiled_buffers(const Program& program, const Function& step, const CompilerLayout& layout);

}  // namespace systole

#pragma once
// The places that a vendor's compiler makes for a step that it sees whole, and how long each is held.
//
// The Program plans a place for every value. A compiler does less and more: values that it fuses into their readers
// have no place; others are padded to the tiles of a TPU's registers, are kept twice, or begin to live elsewhere. So
// the step is walked as it will be scheduled. Each rule has a cause that was seen in the buffers that compilers wrote
// down (docs/concepts/memory.md).

#include <string>
#include <vector>

#include "describe/graph/program.h"
#include "predict/perf/compiler_layout.h"

namespace systole {

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

struct CompiledBuffer {
  std::string name;
  Type type;
  Bytes bytes;
  PeakOwner owner;
  int depth = 0;         // loops around it
  int from = 0, to = 0;  // held: moments of the walk, both ends
};

struct CompiledBuffers {
  Bytes arguments, outputs;  // outputs that are in no argument's place
  std::vector<CompiledBuffer> temporaries;
  int end = 0;  // the last moment
};

// `step`: a function of the Program that is compiled as one module, such as kStepFunction of joined().
CompiledBuffers compiled_buffers(const Program& program, const Function& step, const CompilerLayout& layout);

}  // namespace systole

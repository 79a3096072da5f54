#pragma once
// The kernels that a TPU's compiler is taken to make of a step that it sees whole, and what each of them does.
//
// A product, a norm's sums, a loss or an optimizer's update is a kernel. What is elementwise ends the kernel that makes
// its operand, where nobody else reads that; else it is computed again by each of its readers, which then read what it
// reads. What a loop gives stacked is written by who computes it, or by a pass of its own. Attention is the loops that
// it is lowered to (describe/stablehlo/attention_blocks.h): the cut is the lowering's own.
//
// Bytes are those of values as they are laid out in tiles (compiler_layout.h). Nothing here knows a speed.

#include <string>
#include <vector>

#include "describe/graph/program.h"
#include "predict/perf/compiled_peak.h"
#include "predict/perf/op_time.h"

namespace systole {

struct CompiledKernel {
  OpClass op_class = OpClass::elementwise;
  std::string op;       // that it is for, or that its class is of
  double runs = 1;      // in one step
  double calls = 1;     // as so many: attention's step is several small ones
  double flops = 0;     // of the matrix unit, with dims that are filled up to its tiles
  double results = 0;   // elements that come out of the matrix unit
  double elements = 0;  // of the longest value that goes by, with its padding
  double filled = 0;    // elements that are all set to one number
  double scores = 0;    // of attention: queries × keys of all its blocks
  double bytes = 0;     // read and written, each value once
  double streamed = 0;  // of a product: bytes of operands that pass, over the side of a block (product_dims.h)
};

// `step`: a function of the Program that is compiled as one module. Collectives and copies that run beside the cores
// are in none. Errors: Failure(internal) for an op without a class.
std::vector<CompiledKernel> compiled_kernels(const Program& program, const Function& step,
                                             const CompilerLayout& layout);

}  // namespace systole

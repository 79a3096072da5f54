#pragma once
// The kernels that a TPU's compiler is assumed to make of a step compiled as one module, and the work of each.
//
// A product, a norm's sums, a loss and an optimizer's update are kernels. An elementwise op is fused into the kernel
// that makes its operand if the operand has no other reader; otherwise each reader of the op computes it again from the
// op's operands. A stacked result of a loop is written by the kernel that computes it, or by a copy kernel. Attention
// is the loops that it is lowered to, with the lowering's blocks (describe/stablehlo/attention_blocks.h).
//
// Bytes are those of values laid out in tiles (compiler_layout.h). No speed is known here.

#include <string>
#include <vector>

#include "describe/program/program.h"
#include "predict/perf/compiled_peak.h"
#include "predict/perf/op_time.h"

namespace systole {

struct CompiledKernel {
  OpClass op_class = OpClass::elementwise;
  std::string op;       // its op; "copy" and "zeros" are kernels of no op
  double runs = 1;      // per step
  double calls = 1;     // kernel starts per run: a step of attention is several small kernels
  double flops = 0;     // of the matrix unit, with dims padded to its tiles
  double results = 0;   // elements that leave the matrix unit
  double elements = 0;  // of the largest value that passes the vector unit, padded
  double filled = 0;    // elements set to a constant
  double scores = 0;    // attention: queries × keys of all its blocks
  double bytes = 0;     // read and written, each value once
  double streamed = 0;  // product: operand bytes that stream in, times the side of a block (product_dims.h)
};

// `step`: a function of the Program that is compiled as one module. Collectives, and copies that run beside the cores,
// belong to no kernel. Errors: Failure(internal) for an op without a class.
std::vector<CompiledKernel> compiled_kernels(const Function& step, const CompilerLayout& layout);

}  // namespace systole

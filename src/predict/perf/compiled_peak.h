#pragma once
// The device memory that a vendor's compiler (XLA, for TPUs and GPUs) is predicted to need for a step compiled as one
// module, and its purpose: the buffers (compiled_buffers.h) that are live at the moment with most live bytes.
// data/xla/matrix.csv compares it with compilers' figures.

#include <string>
#include <vector>

#include "predict/perf/compiled_buffers.h"
#include "predict/perf/compiler_layout.h"

namespace systole {

struct PeakTerm {
  PeakOwner owner;
  Bytes bytes;
};

struct PeakBuffer {  // live at the peak
  std::string name;
  Type type;
  PeakOwner owner;
  Bytes bytes;
};

struct CompiledPeak {
  Bytes arguments, outputs;     // outputs that alias no argument
  Bytes temporaries;            // live buffers at the peak, and gaps
  Bytes gaps;                   // part of `temporaries`: holes in the heap at the peak
  Bytes on_chip;                // temporaries that lie in the chip's own memory instead
  std::vector<PeakTerm> terms;  // of the live buffers, largest first
  std::vector<PeakBuffer> buffers;
  Bytes needed() const { return arguments + outputs + temporaries; }
};

// `step`: a function of the Program that is compiled as one module, such as kStepFunction of fused_step().
CompiledPeak compiled_peak(const Program& program, const Function& step, const CompilerLayout& layout);

}  // namespace systole

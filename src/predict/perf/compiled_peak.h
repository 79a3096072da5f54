#pragma once
// What a vendor's compiler (XLA's, for TPUs and GPUs) is predicted to need of a device's memory for a step that it sees
// whole, and what for: of the places that it makes (compiled_buffers.h), those that are alive at the moment at which
// most are. data/xla/matrix.csv has compilers' figures beside these.

#include <string>
#include <vector>

#include "predict/perf/compiled_buffers.h"
#include "predict/perf/compiler_layout.h"

namespace systole {

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

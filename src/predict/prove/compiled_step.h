#pragma once
// Estimates the time of one run of an optimised module, by simulating its schedule, in order, on three resources:
//
//   cores     instructions with the compiler's cycles, at the chip's clock; kernels (custom calls) by the FLOPs and
//             bytes that they state, at the peak and the memory bandwidth, or else by the bytes of their operands and
//             results
//   network   collectives, one after the other, each with its time on the slice's network
//   copies    between memories and within one: everything without cycles that is none of the others, one after the
//             other, at the memory bandwidth
//
// A synchronous operation blocks the cores. An asynchronous one overlaps with them until its end is awaited; the time
// still missing then is exposed. A loop is its body times its trip count, so nothing overlaps from one iteration into
// the next. The result is a second opinion, independent of perf's, and not the truth.

#include "ground/pjrt/hlo_module.h"
#include "predict/prove/slice.h"

namespace systole::prove {

struct StepTime {
  Seconds compute{};      // the compiler's cycles
  Seconds kernels{};      // custom calls
  Seconds collectives{};  // all of them, as if nothing else ran
  Seconds exposed{};      // the part of these that the cores wait for
  Seconds copies{};       // the part of copies that the cores wait for
  Seconds total() const { return compute + kernels + exposed + copies; }
  bool operator==(const StepTime&) const = default;
};

// REQUIRES: the slice has a clock and a network (a TPU's).
StepTime step_time(const pjrt::HloModule& module, const Slice& slice);

}  // namespace systole::prove

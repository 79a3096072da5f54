#pragma once
// How long one run of an optimised module takes: its schedule played, in its order, on three resources.
//
//   cores     what carries the compiler's cycles, at the chip's clock; a kernel (custom call) at its own rate: the
//   FLOPs and
//             bytes that it states, at the peak and at the memory's bandwidth, else the bytes that it takes and gives
//   network   collectives one after the other, each as the slice's network takes it
//   copies    between memories and within one: what has no cycles and is none of the others, one after the other, at
//   the
//             memory's bandwidth
//
// A synchronous one is waited for where it stands. An asynchronous one goes on while the cores do, until its end is
// asked for: what is still missing then is exposed. A loop is its body as often as it runs, so that nothing goes on
// from one round into the next. It is a second opinion, independent of perf's, and not the truth.

#include "ground/pjrt/hlo_module.h"
#include "predict/prove/slice.h"

namespace systole::prove {

struct StepTime {
  Seconds compute{};      // the compiler's cycles
  Seconds kernels{};      // custom calls
  Seconds collectives{};  // all of them, if nothing else ran
  Seconds exposed{};      // of these, what is waited for
  Seconds copies{};       // what is waited for of copies between memories
  Seconds total() const { return compute + kernels + exposed + copies; }
  bool operator==(const StepTime&) const = default;
};

// REQUIRES: the slice has a clock and a network (a TPU's).
StepTime step_time(const pjrt::HloModule& module, const Slice& slice);

}  // namespace systole::prove

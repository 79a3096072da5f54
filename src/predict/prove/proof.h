#pragma once
// What a vendor's compiler said of a program for a slice. Read back from what it is written as; docs/guide/prove.md
// shows it to people.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "predict/prove/executed.h"
#include "predict/prove/step_time.h"

namespace systole::prove {

// Of one device. `aliased` bytes of the outputs lie where arguments were.
struct CompiledMemory {
  Bytes arguments, outputs, aliased, temporaries;
  Bytes host;                  // beside it, in the host's memory
  Bytes on_chip;               // beside it, in a TPU's VMEM: temporaries that are small enough
  std::optional<Bytes> limit;  // what the compiler gives of what is sold
  Bytes needed() const { return arguments + temporaries + outputs - aliased; }
  bool operator==(const CompiledMemory&) const = default;
};

struct Proof {
  std::string slice;
  std::int64_t slice_devices = 0, partitions = 1, replicas = 1;
  std::string compiler;                      // "libtpu 0.0.51, PJRT API 0.116"
  std::string made;                          // when, ISO 8601
  std::map<std::string, std::string> flags;  // that it was given, by name: the chip's and the user's

  bool fits = false;
  std::string refusal;                   // why not, in the compiler's words
  std::optional<CompiledMemory> memory;  // nothing: it does not say how much a program needs that does not fit

  bool whole = false;                           // it compiled to the end; what stands below needs that
  std::optional<double> flops, bytes_accessed;  // of one device and run, as the compiler counts them
  std::optional<Seconds> compute;               // its cycles at the chip's clock
  std::optional<StepTime> step;                 // one run, on a chip with a clock and a network

  ExecutedModule executed;  // cycles and what is untimed only where `whole`
  Seconds took{};
  Bytes took_memory;  // of this machine, to compile
  bool operator==(const Proof&) const = default;
};

Node to_node(const Proof& proof);
// Errors: invalid, not_found: it is no proof.
Result<Proof> proof_of(const Node& node);

}  // namespace systole::prove

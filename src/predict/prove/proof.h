#pragma once
// What a vendor's compiler said of a program for a slice. It can be read back from its document; docs/guide/prove.md
// explains it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "predict/prove/compiled_step.h"
#include "predict/prove/executed.h"

namespace systole::prove {

// Memory of one device. `aliased` bytes of the outputs reuse the memory of arguments.
struct CompiledMemory {
  Bytes arguments, outputs, aliased, temporaries;
  Bytes host;                  // in addition, in host memory
  Bytes on_chip;               // in addition, in a TPU's VMEM: small temporaries
  std::optional<Bytes> limit;  // what the compiler allows, of the nominal memory
  Bytes needed() const { return arguments + temporaries + outputs - aliased; }
  bool operator==(const CompiledMemory&) const = default;
};

struct Proof {
  std::string slice;
  std::int64_t slice_devices = 0, partitions = 1, replicas = 1;
  std::string compiler;                      // "libtpu 0.0.51, PJRT API 0.116"
  std::string made;                          // when, ISO 8601
  std::map<std::string, std::string> flags;  // compiler flags by name, of the chip and the user

  bool fits = false;
  std::string refusal;                   // why not, in the compiler's words
  std::optional<CompiledMemory> memory;  // nothing: the compiler does not tell the needs of a program that does not fit

  bool whole = false;                           // it compiled to the end; the fields below need that
  std::optional<double> flops, bytes_accessed;  // of one device and run, counted by the compiler
  std::optional<Seconds> compute;               // its cycles at the chip's clock
  std::optional<StepTime> step;                 // one run, on a chip with a clock and a network

  ExecutedModule executed;  // cycles and untimed kinds only where `whole`
  Seconds took{};
  Bytes took_memory;  // peak memory of the compile on this machine
  bool operator==(const Proof&) const = default;
};

Node to_node(const Proof& proof);
// Errors: invalid, not_found: not a proof.
Result<Proof> proof_of(const Node& node);

}  // namespace systole::prove

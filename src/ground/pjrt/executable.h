#pragma once
// A compiled program as its compiler describes it: what memory one device needs, what it costs, the program after
// optimisation. It needs no device; client.h runs one.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/pjrt/named_value.h"
#include "ground/tensor/shape.h"

namespace systole::pjrt {

class ExecutableHandle;

// Of one device. `aliased` bytes of the outputs lie where arguments were.
struct MemoryStats {
  Bytes code, arguments, outputs, aliased, temporaries;
  Bytes host_code, host_arguments, host_outputs, host_aliased, host_temporaries;
  Bytes peak;                      // holds space of the host too where a program uses it
  std::optional<Bytes> allocated;  // all buffers together; nothing: the plugin's version (before 0.104) does not say

  // What a device must have: arguments + temporaries + (outputs - aliased).
  Bytes needed() const { return arguments + temporaries + outputs - aliased; }
};

struct OptimizedModule {
  std::string format;  // "hlo_with_config": a serialised HloModuleProtoWithConfig
  std::string bytes;
};

struct OutputType {
  std::optional<DType> dtype;  // nothing: a type that Systole has not
  Shape shape;
};

// Copies are the same one. Thread-safe. Every call's errors: what the plugin says; unsupported where it has none.
class Executable {
 public:
  explicit Executable(std::shared_ptr<ExecutableHandle> handle) : handle_(std::move(handle)) {}

  Result<std::string> name() const;
  Result<int> replicas() const;
  Result<int> partitions() const;
  Result<Bytes> code_size() const;
  Result<MemoryStats> memory() const;
  // "flops", "bytes accessed", …: as many as the compiler tells. NVIDIA's tells none (unsupported). "optimal_seconds"
  // of TPUs can be negative: not to be used.
  Result<std::vector<NamedValue>> costs() const;
  Result<OptimizedModule> optimized() const;
  Result<std::vector<OutputType>> outputs() const;
  Result<std::string> fingerprint() const;
  // For a client of the same plugin and version.
  Result<std::string> serialized() const;

 private:
  std::shared_ptr<ExecutableHandle> handle_;
};

}  // namespace systole::pjrt

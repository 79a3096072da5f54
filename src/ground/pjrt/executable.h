#pragma once
// A compiled program as its compiler describes it: memory per device, cost, and the optimized module. Needs no device;
// client.h runs one.

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

// Per device. `aliased` bytes of the outputs share memory with arguments.
struct MemoryStats {
  Bytes code, arguments, outputs, aliased, temporaries;
  Bytes host_code, host_arguments, host_outputs, host_aliased, host_temporaries;
  Bytes peak;                      // includes host memory if the program uses it
  std::optional<Bytes> allocated;  // all buffers together; nothing: not reported by the plugin's version (before 0.104)

  // The memory a device needs: arguments + temporaries + (outputs - aliased).
  Bytes needed() const { return arguments + temporaries + outputs - aliased; }
};

struct OptimizedModule {
  std::string format;  // "hlo_with_config": a serialized HloModuleProtoWithConfig
  std::string bytes;
};

struct OutputType {
  std::optional<DType> dtype;  // nothing: a type without a Systole dtype
  Shape shape;
};

// Copies share state. Thread-safe. Errors of every call: those of the plugin; unsupported if it lacks the function.
class Executable {
 public:
  explicit Executable(std::shared_ptr<ExecutableHandle> handle) : handle_(std::move(handle)) {}

  Result<std::string> name() const;
  Result<int> replicas() const;
  Result<int> partitions() const;
  Result<Bytes> code_size() const;
  Result<MemoryStats> memory() const;
  // "flops", "bytes accessed", …: whatever the compiler reports. NVIDIA's reports nothing (unsupported). Do not use
  // "optimal_seconds" of TPUs: it can be negative.
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

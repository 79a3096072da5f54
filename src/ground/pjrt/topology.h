#pragma once
// The target devices of a compilation; they need not exist.
//
//   Plugin libtpu = TRY(Plugin::load(path));
//   Topology slice = TRY(Topology::create(libtpu, "v5e:2x2"));
//   Executable program = TRY(slice.compile({.code = stablehlo_text}, {.replicas = 4}));
//   Bytes needed = TRY(program.memory()).needed();

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/pjrt/compile_options.h"
#include "ground/pjrt/executable.h"
#include "ground/pjrt/plugin.h"

namespace systole::pjrt {

class TopologyHandle;

struct DeviceDescription {
  int id = 0, process = 0;
  std::string kind, text;  // "TPU v5 lite"; text is for people
  std::vector<NamedValue> attributes;
};

struct ProgramText {
  std::string_view code;             // StableHLO, as text or bytecode
  std::string_view format = "mlir";  // or "hlo", "hlo_with_config": serialized
};

// Copies share state. Thread-safe. Errors of every call: those of the plugin.
class Topology {
 public:
  // TPU: the name of a slice, "v5e:2x2"; NVIDIA: an empty name and the options of gpu_topology.h.
  static Result<Topology> create(const Plugin& plugin, const std::string& name,
                                 const std::vector<NamedValue>& options = {});
  // For client.h.
  explicit Topology(std::shared_ptr<TopologyHandle> handle) : handle_(std::move(handle)) {}

  Result<std::string> platform() const;  // "tpu", "cuda"
  Result<std::string> version() const;   // of the vendor's libraries; may have several lines
  Result<std::vector<DeviceDescription>> devices() const;
  Result<std::vector<NamedValue>> attributes() const;

  // May need minutes and gigabytes for large programs, and uses the plugin's own threads.
  // Errors: does_not_fit: the compiler reports that the program needs more memory than a device has; invalid: a
  // malformed module, an unknown flag. An invalid device assignment makes libtpu end the process.
  Result<Executable> compile(const ProgramText& program, const CompileOptions& options) const;

 private:
  std::shared_ptr<TopologyHandle> handle_;
};

}  // namespace systole::pjrt

#pragma once
// The device for GPUs and TPUs, through a vendor's XLA plugin (PJRT): each function of a Program becomes one StableHLO
// module, compiled when the executor is made, with its values in device memory. XLA's CPU plugin runs the same modules
// on this machine's cores; tests compare those with the reference.
//
// Values have their own buffers, one per slot, not the planned arena: XLA places a function's internal values, and its
// figure (XlaCompiled::memory) is the proof of memory. Inputs that a function may overwrite are donated. Work is not
// counted: XLA does not report what it eliminated.
//
// A Program of a mesh uses as many devices of one XlaHost as the mesh has, with one thread each. Its modules contain
// the collectives and are compiled once for all devices. A call is launched when every thread has arrived. The threads
// synchronize through the devices' Communicator, which releases them if one fails.
//
// Exact: the compiler is restricted to ops with one order of summation. It may still choose kernels by measurement, so
// an executable is identified by its bytes (Device::executables), and a resumed run uses the stored one.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/stablehlo/options.h"
#include "execute/runtime/device.h"
#include "ground/pjrt/client.h"

namespace systole {

// Stores executables across runs. The key covers all inputs of compilation: module, options, plugin, device.
class ExecutableCache {
 public:
  virtual ~ExecutableCache() = default;
  virtual std::optional<std::string> find(const std::string& key) = 0;
  virtual void keep(const std::string& key, std::string_view bytes) = 0;
};

struct XlaOptions {
  int devices = 1;             // number of devices required
  bool makes_devices = false;  // the plugin creates as many as requested, as the CPU's does
  stablehlo::LowerOptions lowering;
  std::shared_ptr<ExecutableCache> cache;  // null: no cache
  pjrt::CompilerFlags flags;               // for the compiler
  // Further flags for a kind of device, named by its vendor; `flags` override them. Null: none.
  std::function<Result<pjrt::CompilerFlags>(const std::string& kind)> flags_of;
  bool exact = false;  // the same bits in every run; refuses a plugin that cannot serialize executables
};

// The flags that make the compiler of a platform ("cuda", "tpu", "cpu") deterministic. A TPU needs none.
pjrt::CompilerFlags exact_flags(std::string_view platform);

// The result of compiling a function.
struct XlaCompiled {
  std::string function;
  Seconds time;              // of compiling or loading
  bool kept_before = false;  // true: from the cache
  pjrt::MemoryStats memory;
  std::vector<std::string> notes;  // for example the attention kernel used
  std::string hash;                // exact: of the serialized executable
  // If the function was compiled and run before: the input that differs now. Otherwise "".
  std::string again;
};

class XlaDevice : public Device {
 public:
  // In compilation order.
  virtual const std::vector<XlaCompiled>& compiled() const = 0;
  // The vendor's name: "TPU v5 lite".
  virtual const std::string& kind() const = 0;
  // The flags given to the compiler.
  virtual const pjrt::CompilerFlags& flags() const = 0;
  // What the results' bits depend on besides the executables: kind, platform, plugin version and interface version.
  virtual const std::string& numerics() const = 0;
};

// A plugin's devices in this process. Thread-safe.
class XlaHost {
 public:
  virtual ~XlaHost() = default;
  virtual int num_devices() const = 0;
  // The devices of a mesh Program are 0, 1, … in order of ranks. Errors: invalid (no such device).
  virtual Result<std::unique_ptr<XlaDevice>> device(int number) = 0;
};

// Errors: unsupported (fewer devices than required); those of the plugin and of flags_of.
Result<std::shared_ptr<XlaHost>> open_xla(const pjrt::Plugin& plugin, const XlaOptions& options = {});

}  // namespace systole

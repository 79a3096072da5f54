#pragma once
// GPUs and TPUs, behind their vendor's plugin of XLA: each function of a Program becomes one StableHLO module, compiled
// when the executor is made and run with its values in the device's memory. XLA's CPU plugin runs the same modules on
// this machine's cores, which is how tests hold them against the reference.
//
// Values live in buffers of their own, one per slot, not in the planned arena: XLA places what is inside a function,
// and its figure (XlaCompiled::memory) is the proof of memory. Functions are donated what they may write in place of.
// Work is not counted: XLA tells nobody what it left out.
//
// A Program of a mesh takes as many devices of one XlaHost as the mesh has, a thread each. Its modules hold the
// collectives and are compiled once, for all of them; a call is launched when every thread has come to it, and the
// threads meet by the Communicator that their devices are connected to, which takes them out again when one fails.
//
// Exact: the compiler is held to ops whose sums have one order. It may still choose among kernels by measuring them,
// so an executable is told apart by its bytes (Device::executables), and the one that is kept is the one that goes on.

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

// Where executables are kept from run to run. The key holds all that makes one: module, options, plugin, device.
class ExecutableCache {
 public:
  virtual ~ExecutableCache() = default;
  virtual std::optional<std::string> find(const std::string& key) = 0;
  virtual void keep(const std::string& key, std::string_view bytes) = 0;
};

struct XlaOptions {
  int devices = 1;             // how many are wanted
  bool makes_devices = false;  // the plugin makes as many as it is asked for, as the CPU's does
  stablehlo::LowerOptions lowering;
  std::shared_ptr<ExecutableCache> cache;  // null: none
  pjrt::CompilerFlags flags;               // of the compiler
  // Those that it is given besides, under `flags`, for a device that its vendor calls so; null: none.
  std::function<Result<pjrt::CompilerFlags>(const std::string& kind)> flags_of;
  bool exact = false;  // the same bits at every run; refuses a plugin that cannot write its programs down
};

// What holds the compiler of a platform ("cuda", "tpu", "cpu") to the same bits at every run. A TPU needs nothing.
pjrt::CompilerFlags exact_flags(std::string_view platform);

// What became of a function.
struct XlaCompiled {
  std::string function;
  Seconds time;              // of compiling, or of loading
  bool kept_before = false;  // it was in the cache
  pjrt::MemoryStats memory;
  std::vector<std::string> notes;  // which attention it got
  std::string hash;                // exact: of the executable as it is written down
  // It was compiled before, and that was run: which input is another one now. "" where that is not so.
  std::string again;
};

class XlaDevice : public Device {
 public:
  // In the order of compiling.
  virtual const std::vector<XlaCompiled>& compiled() const = 0;
  // What its vendor calls it: "TPU v5 lite".
  virtual const std::string& kind() const = 0;
  // What the compiler was told.
  virtual const pjrt::CompilerFlags& flags() const = 0;
  // What its bits depend on besides the executables: kind, platform, the plugin's version and its interface's.
  virtual const std::string& numerics() const = 0;
};

// A plugin's devices as this process has them. Thread-safe.
class XlaHost {
 public:
  virtual ~XlaHost() = default;
  virtual int num_devices() const = 0;
  // The devices of a Program of a mesh are 0, 1, … in the order of its ranks. Errors: invalid (no such device).
  virtual Result<std::unique_ptr<XlaDevice>> device(int number) = 0;
};

// Errors: unsupported: it has fewer devices than are wanted; those of the plugin and of flags_of.
Result<std::shared_ptr<XlaHost>> open_xla(const pjrt::Plugin& plugin, const XlaOptions& options = {});

}  // namespace systole

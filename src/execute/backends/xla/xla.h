#pragma once
// A GPU or TPU, behind its vendor's plugin of XLA: each function of a Program becomes one StableHLO module, compiled
// when the executor is made and run with its values in the device's memory. XLA's CPU plugin runs the same modules on
// this machine's cores, which is how tests hold them against the reference.
//
// Values live in buffers of their own, one per slot, not in the planned arena: XLA places what is inside a function,
// and its figure is the proof of memory (memory_of). Functions are donated what they may write in place of. Work is not
// counted: XLA tells nobody what it left out.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  int device = 0;  // of those that this process may use
  stablehlo::LowerOptions lowering;
  ExecutableCache* cache = nullptr;                              // null: none; else it outlives the device
  std::vector<std::pair<std::string, pjrt::OptionValue>> flags;  // of the compiler
};

// What became of a function.
struct XlaCompiled {
  std::string function;
  Seconds time;              // of compiling, or of loading
  bool kept_before = false;  // it was in the cache
  pjrt::MemoryStats memory;
  std::vector<std::string> notes;  // which attention it got
};

class XlaDevice : public Device {
 public:
  // In the order of compiling.
  virtual const std::vector<XlaCompiled>& compiled() const = 0;
};

// Errors: invalid (no such device); those of the plugin.
Result<std::unique_ptr<XlaDevice>> make_xla_device(const pjrt::Plugin& plugin, const XlaOptions& options = {});

}  // namespace systole

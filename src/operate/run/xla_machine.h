#pragma once
// GPUs and TPUs, and XLA on this machine's cores: the device of `--device gpu | tpu | xla-cpu`.

#include <memory>
#include <string>
#include <vector>

#include "describe/spec/run.h"
#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/backends/xla/xla.h"
#include "ground/catalog/catalog.h"

namespace systole {

bool is_xla(const std::string& backend);

// Loads the vendor's plugin into this process, with so many devices; xla-cpu makes them from this machine's cores.
// First tries the plugin in a child process, within `timeout`. Keeps what it compiles (executable_folder.h). `exact`:
// for exact training. The compiler gets the flags that the catalog has for the chip. Errors: not_found: the catalog
// does not know the chip; unsupported: the plugin is missing, with the command that gets it; it sees no device or too
// few, aborts or hangs; those of the plugin.
Result<std::shared_ptr<XlaHost>> open_xla_host(const std::string& backend, std::int64_t devices, const Catalog& catalog,
                                               bool exact = false, Seconds timeout = Seconds(60.0));

// What the bits of exact training on so many devices depend on, besides the executables.
std::string xla_numerics(const std::string& backend, const Device& device, std::int64_t devices);

// Checks that the functions compiled to the same executables as when the checkpoint was saved. `before`: its
// "executables"; null: it does not say. Errors: invalid, with where they were kept.
Status check_executables(const Node* before, const Device& device);

// Refuses what XLA's devices do not support yet. Errors: unsupported, at the key.
Status check_xla(const Workload& workload, const WorkloadSource& source);

// The number of compiled and loaded functions, and their time: the cause of the category `compile`. Nothing if the
// device is not XLA's.
std::optional<Note> compile_note(const Device& device);

// Reports recompilation. Every function is compiled before the first step, with fixed shapes. A recompilation after
// that costs unplanned minutes, at every step if the input keeps changing. Each one is reported, with the input and the
// dim that changed, up to kMost times.
class CompileWatch {
 public:
  static constexpr std::size_t kMost = 3;
  // Watches from now on; earlier compilations are not reported. REQUIRES: `device` outlives this.
  explicit CompileWatch(const Device& device);
  // Recompilations since the last call. Empty if the device is not XLA's.
  std::vector<Note> news();

 private:
  const XlaDevice* device_;  // null: another kind
  std::size_t seen_ = 0, told_ = 0;
};

// The largest temporary memory of any compiled function. REQUIRES: `device` is open_xla_device's.
Bytes temporaries_of(const Device& device);

// The catalog entry with the device's speed: of the chip that its vendor calls `kind`, or of this machine's cores.
// Errors: not_found: the catalog has no entry for this chip.
Result<std::string> catalog_entry_of_xla(const std::string& backend, const std::string& kind, const Catalog& catalog);

}  // namespace systole

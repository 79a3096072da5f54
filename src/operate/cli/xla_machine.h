#pragma once
// GPUs and TPUs, and XLA on this machine's own cores: the device of `--device gpu | tpu | xla-cpu`.

#include <memory>
#include <string>
#include <vector>

#include "describe/spec/run.h"
#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/backends/xla/xla.h"
#include "ground/catalog/catalog.h"

namespace systole::cli {

bool is_xla(const std::string& backend);

// Loads the vendor's plugin into this process, with so many devices; xla-cpu makes them of this machine's cores. The
// plugin is tried in a child process first, within `timeout`. What it compiles is kept (executable_folder.h). `exact`:
// for exact training. The compiler is given the flags that the catalog has for the chip.
// Errors: not_found: the catalog does not know the chip; unsupported: the plugin is not there, with the command that
// gets it; it sees no device or too few, aborts or hangs; those of the plugin.
Result<std::shared_ptr<XlaHost>> open_xla_host(const std::string& backend, std::int64_t devices, const Catalog& catalog,
                                               bool exact = false, Seconds timeout = Seconds(60.0));

// What the bits of exact training depend on besides the executables, of so many devices together.
std::string xla_numerics(const std::string& backend, const Device& device, std::int64_t devices);

// That the functions were compiled to what they were when the checkpoint was made, as its "executables" say; null: it
// says nothing. Errors: invalid, with where they were kept.
Status check_executables(const Node* before, const Device& device);

// What a workload asks for that XLA's devices do not do yet, at its place. Errors: unsupported.
Status check_xla(const Workload& workload, const WorkloadSource& source);

// How many functions were compiled and loaded, and what that took: the cause of the category `compile`. Nothing of a
// device that is not XLA's.
std::optional<Note> compile_note(const Device& device);

// Every function is compiled before the first step, with shapes that stay. Should one be compiled anew after it was run
// all the same, that costs minutes which nobody planned, again and again if its input changes at every step: each time
// is told, with the input and the dim that are others now, up to kMost times.
class CompileWatch {
 public:
  static constexpr std::size_t kMost = 3;
  // From what `device` has compiled by now on. REQUIRES: it outlives this.
  explicit CompileWatch(const Device& device);
  // What was compiled anew since this was asked last. Nothing of a device that is not XLA's.
  std::vector<Note> news();

 private:
  const XlaDevice* device_;  // null: another kind
  std::size_t seen_ = 0, told_ = 0;
};

// The most that the compiler needs inside a function of those that were compiled. REQUIRES: `device` is
// open_xla_device's.
Bytes temporaries_of(const Device& device);

// Which entry of the catalog says how fast it is: that of the chip which its vendor calls `kind`, or of this machine's
// cores.
// Errors: not_found: nobody has entered this chip.
Result<std::string> catalog_entry_of_xla(const std::string& backend, const std::string& kind, const Catalog& catalog);

}  // namespace systole::cli

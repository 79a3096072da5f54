#pragma once
// GPUs and TPUs, and XLA on this machine's own cores: the device of `--device gpu | tpu | xla-cpu`.

#include <memory>
#include <string>

#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/runtime/device.h"
#include "ground/catalog/catalog.h"

namespace systole::cli {

bool is_xla(const std::string& backend);

// Loads the vendor's plugin into this process; what it compiles is kept under $XDG_CACHE_HOME/systole/xla (else
// $HOME/.cache/systole/xla; without both: nowhere).
// Errors: unsupported: the plugin is not there, with the command that gets it; those of the plugin.
Result<std::unique_ptr<Device>> open_xla_device(const std::string& backend);

// What a workload asks for that XLA's devices do not do yet, at its place. Errors: unsupported.
Status check_xla(const Workload& workload, const WorkloadSource& source);

// The most that the compiler needs inside a function of those that were compiled. REQUIRES: `device` is
// open_xla_device's.
Bytes temporaries_of(const Device& device);

// Which entry of the catalog says how fast it is: the chip's, or of this machine's cores.
// Errors: not_found: nobody has entered this chip.
Result<std::string> catalog_entry_of_xla(const std::string& backend, const Target& target, const Catalog& catalog);

}  // namespace systole::cli

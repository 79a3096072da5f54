#pragma once
// GPUs and TPUs, and XLA on this machine's own cores: the device of `--device gpu | tpu | xla-cpu`.

#include <memory>
#include <string>

#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/backends/xla/xla.h"
#include "ground/catalog/catalog.h"

namespace systole::cli {

bool is_xla(const std::string& backend);

// Loads the vendor's plugin into this process, with so many devices; xla-cpu makes them of this machine's cores. The
// plugin is tried in a child process first, within `timeout`. What it compiles is kept (executable_folder.h).
// Errors: unsupported: the plugin is not there, with the command that gets it; it sees no device or too few, aborts or
// hangs; those of the plugin.
Result<std::shared_ptr<XlaHost>> open_xla_host(const std::string& backend, std::int64_t devices,
                                               Seconds timeout = Seconds(60.0));

// What a workload asks for that XLA's devices do not do yet, at its place. Errors: unsupported.
Status check_xla(const Workload& workload, const WorkloadSource& source);

// The most that the compiler needs inside a function of those that were compiled. REQUIRES: `device` is
// open_xla_device's.
Bytes temporaries_of(const Device& device);

// Which entry of the catalog says how fast it is: that of the chip which its vendor calls `kind`, or of this machine's
// cores.
// Errors: not_found: nobody has entered this chip.
Result<std::string> catalog_entry_of_xla(const std::string& backend, const std::string& kind, const Catalog& catalog);

}  // namespace systole::cli

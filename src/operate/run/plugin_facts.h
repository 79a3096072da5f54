#pragma once
// The facts about XLA's plugins that operate/doctor judges. Each plugin is tried in a child process, this program with
// --probe, so an abort or a hang is a fact too.

#include <cstdint>
#include <string>

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/catalog/catalog.h"
#include "operate/doctor/devices.h"
#include "operate/doctor/xla.h"

namespace systole {

// In the child: tests whether a plugin's compiler works. Always returns one document, of the result or of the error, so
// the parent can tell a refusal from a crash.
Node probe_compiler(const std::string& plugin, const std::string& folder, Clock& clock);

// Facts about the plugins in `folder`; each may take up to `timeout`.
XlaFacts xla_facts(const std::string& folder, Seconds timeout);

// What the plugin of a device (gpu, tpu, xla-cpu) sees, if `ranks` need one device each.
RuntimeFacts runtime_facts(const std::string& device, std::int64_t ranks, const std::string& folder, Seconds timeout,
                           const Catalog& catalog);

}  // namespace systole

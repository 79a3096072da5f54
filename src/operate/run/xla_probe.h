#pragma once
// Tries a plugin in a child process, this program with a hidden option: an abort, a hang or stray output becomes an
// error message. Also asks a plugin's runtime what devices it sees.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/units.h"
#include "ground/process/spawn.h"

namespace systole {

// The document in the last line of the child's output. Errors: unsupported: the child's "error", how it crashed, or
// that it printed nothing.
Result<Node> asked_in_child(Command command, Seconds timeout);

// What a plugin's client reports in this process.
struct PluginDevice {
  int id = 0;
  std::string kind;             // "TPU v5 lite"
  std::optional<Bytes> memory;  // available to programs; nothing: unknown
};
struct PluginDevices {
  std::string platform, api, warning;
  std::vector<PluginDevice> devices;
  Seconds time;
};

// `plugin`: "tpu", "gpu", "cpu". `wanted`: number of devices, for a plugin that makes as many as requested. Errors:
// unsupported: no such plugin, with the command that gets it; it sees no device; it aborts, or hangs for longer than
// `timeout`.
Result<PluginDevices> probe_devices(const std::string& plugin, const std::string& folder, int wanted, Seconds timeout);

// In the child: one document, of the devices seen or of the error.
Node devices_of_plugin(const std::string& plugin, const std::string& folder, int wanted);

// Files in /dev of a plugin's kind of devices ("tpu", "gpu"; "": of any).
std::vector<std::string> device_files(const std::string& plugin = "");

}  // namespace systole

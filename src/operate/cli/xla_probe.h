#pragma once
// A plugin tried in a child process, this program with a hidden option: it may abort, hang or print what it likes, and
// that is a sentence then. And what the runtime of one sees, asked for so.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/units.h"
#include "ground/process/spawn.h"

namespace systole::cli {

// The document that is the last line of the child's output. Errors: unsupported: what the child said in "error", how it
// ended otherwise, or that it said nothing.
Result<Node> asked_in_child(Command command, Seconds timeout);

// What a plugin's client has in this process.
struct SeenDevice {
  int id = 0;
  std::string kind;             // "TPU v5 lite"
  std::optional<Bytes> memory;  // that programs may have; nothing: it does not say
};
struct SeenDevices {
  std::string platform, api, warning;
  std::vector<SeenDevice> devices;
  Seconds time;
};

// `plugin`: "tpu", "gpu", "cpu", and `wanted` devices of a plugin that makes as many as it is asked for.
// Errors: unsupported: no such plugin, with the command that gets it; it sees no device; it aborts, or hangs for longer
// than `timeout`.
Result<SeenDevices> see_devices(const std::string& plugin, const std::string& folder, int wanted, Seconds timeout);

// In the child: one document, of what is seen or of the error.
Node seen_here(const std::string& plugin, const std::string& folder, int wanted);

// Files in /dev of the kinds that a plugin's devices have ("tpu", "gpu"; "": of any).
std::vector<std::string> device_files(const std::string& plugin = "");

}  // namespace systole::cli

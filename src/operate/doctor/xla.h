#pragma once
// Judges XLA's plugins on this machine: which compilers are installed, whether they work, and the command that installs
// a missing one. Rules over facts; the collector loads each plugin in a child process, because it may abort or hang.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "operate/doctor/doctor.h"

namespace systole {

struct XlaPluginFacts {
  std::string name;     // "tpu"
  std::string purpose;  // "programs for TPUs can be compiled"
  std::string get;      // command that installs it
  bool there = false;
  std::string path, package;           // "libtpu 0.0.51"; "" if not recorded
  std::optional<std::string> problem;  // why it does not work: its message, or how its process ended
  std::string api, stablehlo;          // "0.116", "1.23.0"; "" if unknown
  std::string warning;                 // about an untested version
  std::string did;                     // what was tried: "compiled two ops for v5e:2x2"
  Seconds time{};                      // of that
};

struct XlaFacts {
  std::string folder;
  std::vector<XlaPluginFacts> plugins;
  std::vector<std::string> devices;  // "/dev/nvidia0": usable by a run
};

std::vector<Finding> examine_xla(const XlaFacts& facts);

// The last output of a failed plugin process: its last line that mentions a failure, otherwise its last line.
std::string last_words(const std::string& text);

}  // namespace systole

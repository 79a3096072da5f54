#pragma once
// Judges XLA's plugins on this machine: which compilers are there, whether they work, and the one command that gets one
// that is missing. Rules over facts; who gathers them loads each plugin in a child process, for it may abort or hang.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "operate/doctor/doctor.h"

namespace systole {

struct XlaPluginFacts {
  std::string name;     // "tpu"
  std::string purpose;  // "programs for TPUs can be compiled"
  std::string get;      // the command that gets it
  bool there = false;
  std::string path, package;           // "libtpu 0.0.51"; "" where nobody wrote it down
  std::optional<std::string> problem;  // why it does not work: its own message, or how its process ended
  std::string api, stablehlo;          // "0.116", "1.23.0"; "" where it does not say
  std::string warning;                 // of a version that was not tried
  std::string did;                     // "compiled two ops for v5e:2x2"
  Seconds time{};                      // for it
};

struct XlaFacts {
  std::string folder;
  std::vector<XlaPluginFacts> plugins;
  std::vector<std::string> devices;  // "/dev/nvidia0": what a run could use
};

std::vector<Finding> examine_xla(const XlaFacts& facts);

// What a plugin's process said before it ended badly: its last line with a word of failure in it, else its last line.
std::string last_words(const std::string& text);

}  // namespace systole

#pragma once
// Judges what the runtimes of XLA's plugins see: which chips, and which of them each rank of a run would get. Rules
// over facts; who gathers them asks each plugin in a child process, for it may abort or hang.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "operate/doctor/doctor.h"

namespace systole {

struct RuntimeDevice {
  std::string kind;   // "TPU v5 lite"
  std::string entry;  // of the catalog; "" where it has none that is called so
  std::optional<Bytes> memory;
};

struct RuntimeFacts {
  std::string device;  // as --device names it: "tpu"
  std::string get;     // the command that gets its plugin
  bool there = false;  // the plugin
  std::optional<std::string> problem;
  std::vector<RuntimeDevice> devices;
};

struct DevicesFacts {
  std::vector<RuntimeFacts> runtimes;
  std::int64_t ranks = 1;
  std::string wanted;  // the catalog's entry that all ranks must have; "": any, but all the same
  bool asked = false;  // for one runtime: that it has nothing is wrong then
};

// A finding for each runtime, and for each rank on a runtime that has devices or was asked for.
std::vector<Finding> examine_devices(const DevicesFacts& facts);

}  // namespace systole

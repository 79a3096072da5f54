#pragma once
// Judges what the runtimes of XLA's plugins see: the chips, and the one that each rank of a run would get. Rules over
// facts; the collector queries each plugin in a child process, because it may abort or hang.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "operate/doctor/doctor.h"

namespace systole {

struct RuntimeDevice {
  std::string kind;   // "TPU v5 lite"
  std::string entry;  // in the catalog; "" if it has no such entry
  std::optional<Bytes> memory;
};

struct RuntimeFacts {
  std::string device;  // value of --device: "tpu"
  std::string get;     // command that installs its plugin
  bool there = false;  // the plugin is installed
  std::optional<std::string> problem;
  std::vector<RuntimeDevice> devices;
};

struct DevicesFacts {
  std::vector<RuntimeFacts> runtimes;
  std::int64_t ranks = 1;
  std::string wanted;  // catalog entry that all ranks must have; "": any, but the same for all
  bool asked = false;  // a runtime was requested: then having no device is a failure
};

// A finding for each runtime, and for each rank on a runtime that has devices or was requested.
std::vector<Finding> examine_devices(const DevicesFacts& facts);

}  // namespace systole

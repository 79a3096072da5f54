#include "operate/doctor/devices.h"
#include "ground/base/counted.h"

#include <map>

namespace systole {
namespace {

// "4 × TPU v5 lite (v5e), 15.7 GiB each".
std::string text_of(const std::vector<RuntimeDevice>& devices) {
  std::map<std::string, int> kinds;
  for (const RuntimeDevice& device : devices) {
    std::string kind = device.kind;
    if (!device.entry.empty()) kind += " (" + device.entry + ")";
    if (device.memory) kind += ", " + to_string(*device.memory) + " each";
    ++kinds[kind];
  }
  std::string text;
  for (const auto& [kind, count] : kinds) text += fmt::format("{}{} × {}", text.empty() ? "" : "; ", count, kind);
  return text;
}

Finding examine_runtime(const RuntimeFacts& runtime, bool asked) {
  const Verdict lacking = asked ? Verdict::fail : Verdict::warn;
  if (!runtime.there) return {runtime.device, lacking, "its plugin is not there", runtime.get};
  const std::string without = "without one: systole run --device xla-cpu, systole prove --on";
  if (runtime.problem) return {runtime.device, lacking, "none: " + *runtime.problem, without};
  if (runtime.devices.empty()) return {runtime.device, lacking, "none", without};
  return {runtime.device, Verdict::ok, text_of(runtime.devices), ""};
}

Finding examine_rank(const RuntimeFacts& runtime, std::int64_t rank, const DevicesFacts& facts) {
  const std::string name = fmt::format("rank {}", rank);
  const auto number = static_cast<std::size_t>(rank);
  if (number >= runtime.devices.size()) {
    return {name, Verdict::fail,
            fmt::format("none: {} sees {}, and there are {}", runtime.device, counted(runtime.devices.size(), "device"),
                        counted(facts.ranks, "rank")),
            runtime.devices.empty() ? "a machine with as many, or --device xla-cpu"
                                    : fmt::format("--ranks {}", runtime.devices.size())};
  }
  const RuntimeDevice& device = runtime.devices[number];
  const std::string text = fmt::format("{} {}: {}", runtime.device, number, device.kind);
  if (!facts.wanted.empty() && device.entry != facts.wanted) {
    return {name, Verdict::fail, fmt::format("{}, the wrong kind: {} is wanted", text, facts.wanted),
            "a machine of that kind, or plan for this one"};
  }
  if (device.kind != runtime.devices[0].kind) {
    return {name, Verdict::fail, fmt::format("{}, the wrong kind: rank 0 has a {}", text, runtime.devices[0].kind),
            "ranks of a run are to be of one kind"};
  }
  if (device.entry.empty() && runtime.device != "xla-cpu")
    return {name, Verdict::warn, text + ", of which the catalog knows nothing",
            "docs/guide/gpu-and-tpu.md shows how it is entered"};
  return {name, Verdict::ok, text, ""};
}

}  // namespace

std::vector<Finding> examine_devices(const DevicesFacts& facts) {
  std::vector<Finding> findings;
  for (const RuntimeFacts& runtime : facts.runtimes) {
    findings.push_back(examine_runtime(runtime, facts.asked));
    if (runtime.devices.empty() && !facts.asked) continue;
    for (std::int64_t rank = 0; rank < facts.ranks; ++rank) findings.push_back(examine_rank(runtime, rank, facts));
  }
  return findings;
}

}  // namespace systole

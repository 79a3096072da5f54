#include "operate/run/plugin_facts.h"

#include "ground/pjrt/client.h"
#include "ground/pjrt/gpu_topology.h"
#include "ground/pjrt/places.h"
#include "ground/pjrt/topology.h"
#include "operate/run/xla_machine.h"
#include "operate/run/xla_probe.h"

namespace systole {
namespace {

constexpr const char* kTwoOps = R"(module @two_ops {
  func.func public @main(%a: tensor<256x512xf32>, %b: tensor<512x128xf32>) -> tensor<256x128xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<256x512xf32>, tensor<512x128xf32>) -> tensor<256x128xf32>
    %1 = stablehlo.tanh %0 : tensor<256x128xf32>
    return %1 : tensor<256x128xf32>
  }
})";

// A generic GPU of compute capability 9.0, not a product: it only tests whether the compiler works.
pjrt::GpuFacts some_gpu() {
  pjrt::GpuFacts gpu;
  gpu.name = "some GPU";
  gpu.capability_major = 9;
  gpu.cores = 1;
  gpu.clock_ghz = 1;
  gpu.memory = gpu.l2_cache = Bytes(1 << 30);
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  gpu.shared_memory_per_block_optin = gpu.shared_memory_per_core = gpu.shared_memory_per_block;
  return gpu;
}

// Compiles two ops for devices that may be absent; the CPU plugin uses its own.
Result<std::string> try_it(const pjrt::Plugin& plugin, const std::string& name) {
  if (name != "tpu" && name != "gpu") {
    const pjrt::Client client = TRY(pjrt::Client::create(plugin));
    TRY(client.compile({.code = kTwoOps}, {}));
    return std::string("compiled two ops for this machine");
  }
  const pjrt::Topology topology = name == "tpu"
                                      ? TRY(pjrt::Topology::create(plugin, "v5e:2x2"))
                                      : TRY(pjrt::Topology::create(plugin, "", gpu_topology_options(some_gpu(), {})));
  const pjrt::Executable executable = TRY(topology.compile({.code = kTwoOps}, {}));
  TRY(executable.memory());
  return "compiled two ops for " + std::string(name == "tpu" ? "v5e:2x2" : "a GPU of compute capability 9.0");
}

Result<Node> probed(const std::string& name, const std::string& folder, Clock& clock) {
  const pjrt::PluginPlace place = TRY(pjrt::find_plugin(name, folder));
  pjrt::prepare_environment(place, true);
  const Seconds began = clock.now();
  const pjrt::Plugin plugin = TRY(pjrt::Plugin::load(place.path));
  const std::string did = TRY(try_it(plugin, name));
  return Node::map({{"api", to_string(plugin.version())},
                    {"stablehlo", plugin.newest_stablehlo().value_or("")},
                    {"warning", plugin.warning()},
                    {"did", did},
                    {"seconds", (clock.now() - began).count()}});
}

// Records the child's answer, or how it ended.
void take(const Result<Node>& said, XlaPluginFacts& plugin) {
  if (!said.ok()) {
    plugin.problem = said.error().message;
    return;
  }
  plugin.api = said->text_at("api");
  plugin.stablehlo = said->text_at("stablehlo");
  plugin.warning = said->text_at("warning");
  plugin.did = said->text_at("did");
  if (const Node* seconds = said->find("seconds")) plugin.time = Seconds(seconds->as_double().value());
}

XlaPluginFacts plugin_facts(const std::string& name, const std::string& folder, Seconds timeout) {
  XlaPluginFacts plugin;
  plugin.name = name;
  plugin.purpose = name == "tpu" ? "programs are compiled for TPUs" : "programs are compiled for NVIDIA GPUs";
  const Result<pjrt::PluginPlace> place = pjrt::find_plugin(name, folder);
  plugin.there = place.ok();
  plugin.get = folder == pjrt::plugins_folder() ? "tools/xla-plugins " + name
                                                : "tools/xla-plugins --folder " + folder + " " + name;
  if (!place.ok()) return plugin;
  plugin.path = place->path;
  plugin.package = place->version;
  take(asked_in_child({.argv = {"/proc/self/exe", "doctor", "xla", "--folder", folder, "--probe", name}}, timeout),
       plugin);
  return plugin;
}

}  // namespace

Node probe_compiler(const std::string& plugin, const std::string& folder, Clock& clock) {
  Result<Node> seen = probed(plugin, folder, clock);
  return seen.ok() ? *std::move(seen) : Node::map({{"error", seen.error().message}});
}

XlaFacts xla_facts(const std::string& folder, Seconds timeout) {
  XlaFacts facts;
  facts.folder = folder;
  for (const std::string& name : pjrt::plugin_names()) {
    // Plugins that only tests use are listed only if present.
    if (name != "tpu" && name != "gpu" && !pjrt::find_plugin(name, folder).ok()) continue;
    facts.plugins.push_back(plugin_facts(name, folder, timeout));
  }
  facts.devices = device_files();
  return facts;
}

RuntimeFacts runtime_facts(const std::string& device, std::int64_t ranks, const std::string& folder, Seconds timeout,
                           const Catalog& catalog) {
  const std::string plugin = device == "xla-cpu" ? "cpu" : device;
  RuntimeFacts runtime;
  runtime.device = device;
  const Result<pjrt::PluginPlace> place = pjrt::find_plugin(plugin, folder);
  runtime.there = place.ok();
  runtime.get = place.ok() ? "" : place.error().hint;
  if (!runtime.there) return runtime;
  const Result<PluginDevices> seen = probe_devices(plugin, folder, static_cast<int>(ranks), timeout);
  if (!seen.ok()) {
    runtime.problem = seen.error().message;
    return runtime;
  }
  for (const PluginDevice& one : seen->devices) {
    const Result<std::string> entry = catalog_entry_of_xla(device, one.kind, catalog);
    runtime.devices.push_back({one.kind, entry.ok() && device != "xla-cpu" ? *entry : "", one.memory});
  }
  return runtime;
}

}  // namespace systole

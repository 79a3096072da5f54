// `systole doctor xla`: which of XLA's compilers are there, whether they work, and the one command that gets one. Each
// is tried in a child process, this program with --probe: a plugin that aborts or hangs is a line of the table.

#include "operate/doctor/xla.h"

#include "ground/base/document.h"
#include "ground/pjrt/client.h"
#include "ground/pjrt/gpu_topology.h"
#include "ground/pjrt/places.h"
#include "ground/pjrt/topology.h"
#include "operate/cli/findings.h"
#include "operate/cli/plugin_trial.h"
#include "operate/cli/xla_probe.h"

namespace systole::cli {
namespace {

constexpr const char* kTwoOps = R"(module @two_ops {
  func.func public @main(%a: tensor<256x512xf32>, %b: tensor<512x128xf32>) -> tensor<256x128xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<256x512xf32>, tensor<512x128xf32>) -> tensor<256x128xf32>
    %1 = stablehlo.tanh %0 : tensor<256x128xf32>
    return %1 : tensor<256x128xf32>
  }
})";

// Some GPU of compute capability 9.0, not one that is sold: what is tried is whether the compiler works.
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

// Compiles two ops for devices that need not be there, or for the plugin's own where it is the CPU's.
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

// In the child: always one document, so that whoever reads it knows a refusal from a crash.
ExitCode probe(const PluginTrial& options, Context& context) {
  Result<Node> seen = probed(options.probe, pjrt::plugins_folder(options.folder), context.clock);
  Node document = seen.ok() ? *std::move(seen) : Node::map({{"error", seen.error().message}});
  context.out.data(to_json(document));
  context.out.json(std::move(document));
  return ExitCode::done;
}

std::string text_at(const Node& document, const char* key) {
  const Node* value = document.find(key);
  return value == nullptr ? "" : value->text();
}

// What the child said, or how it ended.
void take(const Result<Node>& said, XlaPluginFacts& plugin) {
  if (!said.ok()) {
    plugin.problem = said.error().message;
    return;
  }
  plugin.api = text_at(*said, "api");
  plugin.stablehlo = text_at(*said, "stablehlo");
  plugin.warning = text_at(*said, "warning");
  plugin.did = text_at(*said, "did");
  if (const Node* seconds = said->find("seconds")) plugin.time = Seconds(seconds->as_double().value());
}

XlaPluginFacts facts_of(const std::string& name, const PluginTrial& options, const std::string& folder) {
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
  take(asked_in_child({.argv = {"/proc/self/exe", "doctor", "xla", "--folder", folder, "--probe", name}},
                      Seconds(options.timeout)),
       plugin);
  return plugin;
}

ExitCode look(const PluginTrial& options, Context& context) {
  if (!options.probe.empty()) return probe(options, context);
  XlaFacts facts;
  facts.folder = pjrt::plugins_folder(options.folder);
  for (const std::string& name : pjrt::plugin_names()) {
    // The tests' own are told only where they are.
    if (name != "tpu" && name != "gpu" && !pjrt::find_plugin(name, facts.folder).ok()) continue;
    facts.plugins.push_back(facts_of(name, options, facts.folder));
  }
  facts.devices = device_files();
  return print_findings(examine_xla(facts), context);
}

}  // namespace

void add_doctor_xla(Subcommand doctor, Context& context) {
  auto options = std::make_shared<PluginTrial>();
  Subcommand command = add_command(doctor, "xla", "XLA's compilers: which are there, do they work, how to get them",
                                   options, context, look);
  add_plugin_trial(command, *options);
}

}  // namespace systole::cli

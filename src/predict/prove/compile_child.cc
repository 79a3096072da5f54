// The child's side of a compile.

#include "predict/prove/compile_child.h"

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/pjrt/places.h"
#include "ground/pjrt/topology.h"
#include "ground/store/store.h"
#include "predict/prove/child_files.h"

namespace systole::prove {
namespace {

Node to_node(const pjrt::MemoryStats& memory) {
  return Node::map({{"arguments", memory.arguments.count()},
                    {"outputs", memory.outputs.count()},
                    {"aliased", memory.aliased.count()},
                    {"temporaries", memory.temporaries.count()},
                    {"host_arguments", memory.host_arguments.count()},
                    {"host_outputs", memory.host_outputs.count()},
                    {"host_temporaries", memory.host_temporaries.count()},
                    {"code", memory.code.count()},
                    {"peak", memory.peak.count()}});
}

Node refused(const char* stage, const Error& error) {
  return Node::map({{"error", Node::map({{"stage", stage},
                                         {"kind", static_cast<int>(error.kind)},
                                         {"message", error.message},
                                         {"hint", error.hint}})}});
}

Result<pjrt::OptionValue> flag_of(const Node& node) {
  const std::string type = TRY(TRY(node.get("type"))->as_string()), text = TRY(TRY(node.get("value"))->as_string());
  if (type == "yes") return pjrt::OptionValue(text == "true");
  if (type == "whole") return pjrt::OptionValue(static_cast<std::int64_t>(std::stoll(text)));
  if (type == "real") return pjrt::OptionValue(std::stod(text));
  return pjrt::OptionValue(text);
}

Result<pjrt::CompileOptions> options_of(const Node& request) {
  pjrt::CompileOptions options;
  options.replicas = static_cast<int>(TRY(TRY(request.get("replicas"))->as_int(1)));
  options.partitions = static_cast<int>(TRY(TRY(request.get("partitions"))->as_int(1)));
  options.spmd = TRY(TRY(request.get("spmd"))->as_bool());
  options.shardy = TRY(TRY(request.get("shardy"))->as_bool());
  for (const Node& device : TRY(request.get("devices"))->items()) options.devices.push_back(TRY(device.as_int(0)));
  for (const Node::Entry& flag : TRY(request.get("flags"))->entries())
    options.flags.emplace_back(flag.key, TRY(flag_of(flag.value)));
  return options;
}

Result<std::vector<pjrt::NamedValue>> topology_options(const Node& request) {
  std::vector<pjrt::NamedValue> options;
  for (const Node::Entry& option : TRY(request.get("topology_options"))->entries())
    options.push_back({option.key, TRY(option.value.as_string())});
  return options;
}

// The memory of a device that a program may use; 0: the topology does not state it.
std::int64_t memory_limit_of(const pjrt::Topology& topology) {
  const Result<std::vector<pjrt::NamedValue>> all = topology.attributes();
  const pjrt::NamedValue* limit = all.ok() ? pjrt::find(*all, "device_memory_bytes_limit") : nullptr;
  const auto* bytes = limit == nullptr ? nullptr : std::get_if<std::int64_t>(&limit->value);
  return bytes == nullptr ? 0 : *bytes;
}

// Compiles, and returns the document for answer.json.
Result<Node> answer(const Node& request, Store& files, Clock& clock) {
  const Seconds began = clock.now();
  const std::string name = TRY(TRY(request.get("plugin"))->as_string());
  const Result<pjrt::PluginPlace> place = pjrt::find_plugin(name, TRY(TRY(request.get("plugins"))->as_string()));
  if (!place.ok()) return refused("plugin", place.error());
  pjrt::prepare_environment(*place, true);
  const Result<pjrt::Plugin> plugin = pjrt::Plugin::load(place->path);
  if (!plugin.ok()) return refused("plugin", plugin.error());
  const std::vector<pjrt::NamedValue> options = TRY(topology_options(request));
  const Result<pjrt::Topology> topology =
      pjrt::Topology::create(*plugin, TRY(TRY(request.get("topology"))->as_string()), options);
  if (!topology.ok()) return refused("slice", topology.error());
  TRY(write_whole(files, kStartedFile,
                  to_json(Node::map({{"api", to_string(plugin->version())},
                                     {"stablehlo", plugin->newest_stablehlo().value_or("")},
                                     {"warning", plugin->warning()},
                                     {"memory_limit", memory_limit_of(*topology)},
                                     {"seconds", (clock.now() - began).count()}}))));
  const std::string code = TRY(read_text(files, kModuleFile));
  const Result<pjrt::Executable> executable = topology->compile({.code = code}, TRY(options_of(request)));
  const double seconds = (clock.now() - began).count();
  if (!executable.ok()) return refused("program", executable.error()).set("seconds", seconds);
  const Result<pjrt::MemoryStats> memory = executable->memory();
  if (!memory.ok()) return refused("memory", memory.error());
  Node result = Node::map({{"memory", to_node(*memory)}, {"seconds", seconds}});
  if (const Result<std::vector<pjrt::NamedValue>> costs = executable->costs(); costs.ok()) {
    for (const char* cost : {"flops", "bytes accessed"}) {
      const pjrt::NamedValue* value = pjrt::find(*costs, cost);
      if (value != nullptr && std::holds_alternative<float>(value->value))
        result.set(cost, static_cast<double>(std::get<float>(value->value)));
    }
  }
  // Last: it may be large, and its failure must not lose the answers above.
  if (const Result<pjrt::OptimizedModule> module = executable->optimized(); module.ok()) {
    result.set("format", module->format);
    TRY(write_whole(files, kOptimizedFile, module->bytes));
  }
  return result;
}

}  // namespace

Status compile_here(const std::string& folder) {
  const std::unique_ptr<Store> files = TRY(open_posix_store(folder));
  const Node request = TRY(parse_json(TRY(read_text(*files, kRequestFile)), kRequestFile));
  const Node said = TRY(answer(request, *files, *real_clock()));
  return write_whole(*files, kAnswerFile, to_json(said));
}

}  // namespace systole::prove

#include "operate/run/xla_machine.h"

#include <algorithm>
#include <cstdlib>

#include "ground/base/counted.h"
#include "ground/pjrt/places.h"
#include "ground/process/machine.h"
#include "operate/run/executable_folder.h"
#include "operate/run/machine.h"
#include "operate/run/xla_probe.h"
#include "predict/prove/slice.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu_isa.h"
#endif

namespace systole {
namespace {

// The hint on a machine without the requested device.
std::string way_without(const std::string& backend) {
  return fmt::format(
      "systole doctor devices; without a {} `--device xla-cpu` runs the same modules on this machine's cores, and "
      "`systole prove JOB --on {}` lets its compiler judge them, or with --predict tells what it will need",
      backend == "tpu" ? "TPU" : "GPU", backend == "tpu" ? "v5e:2x2" : "h100:8");
}

// Tries to open a client of the plugin, in a child process because it may crash.
Status try_it(const std::string& backend, const pjrt::PluginPlace& place, std::int64_t devices, Seconds timeout) {
  const Result<PluginDevices> seen =
      probe_devices(place.name, pjrt::plugins_folder(), static_cast<int>(devices), timeout);
  const std::vector<std::string> files = device_files(backend);
  const std::string none = backend == "tpu"   ? "there is no /dev/accel* or /dev/vfio/* here"
                           : backend == "gpu" ? "there is no /dev/nvidia* here"
                                              : "";
  if (!seen.ok()) {
    const std::string why = files.empty() && !none.empty() ? none + ": " : "";
    Error told = error(ErrorKind::unsupported, "--device {}: {}{}", backend, why, seen.error().message);
    told.hint = seen.error().hint.empty() || files.empty() ? way_without(backend) : seen.error().hint;
    return told;
  }
  if (static_cast<std::int64_t>(seen->devices.size()) >= devices) return {};
  if (seen->devices.empty())
    return error(ErrorKind::unsupported, "--device {}: the plugin sees no device", backend)
        .hinted(way_without(backend));
  return error(ErrorKind::unsupported, "--device {}: the mesh has {}, and the plugin sees {} ({})", backend,
               counted(devices, "device"), seen->devices.size(), seen->devices[0].kind)
      .hinted(fmt::format("a mesh of {}; systole doctor devices", seen->devices.size()));
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

bool is_xla(const std::string& backend) { return backend == "gpu" || backend == "tpu" || backend == "xla-cpu"; }

Result<std::shared_ptr<XlaHost>> open_xla_host(const std::string& backend, std::int64_t devices, const Catalog& catalog,
                                               bool exact, Seconds timeout) {
  const pjrt::PluginPlace place =
      TRY(pjrt::find_plugin(backend == "xla-cpu" ? "cpu" : backend, pjrt::plugins_folder()));
  TRY(try_it(backend, place, devices, timeout));
  pjrt::prepare_environment(place, false);
  const pjrt::Plugin plugin = TRY(pjrt::Plugin::load(place.path));
  XlaOptions options;
  options.devices = static_cast<int>(devices);
  options.makes_devices = backend == "xla-cpu";
  options.exact = exact;
  options.flags_of = [backend, catalog](const std::string& kind) -> Result<pjrt::CompilerFlags> {
    return prove::compiler_flags(*TRY(catalog.find(TRY(catalog_entry_of_xla(backend, kind, catalog)))));
  };
  options.cache =
      std::make_shared<ExecutableFolder>(executable_folder(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME")));
  return open_xla(plugin, options);
}

std::string xla_numerics(const std::string& backend, const Device& device, std::int64_t devices) {
  std::string text = static_cast<const XlaDevice&>(device).numerics();
  if (backend == "xla-cpu") text += ", " + processor_name();  // it compiles for the cores that it finds
  return devices > 1 ? fmt::format("{} of {}", counted(devices, "device"), text) : text;
}

Status check_executables(const Node* before, const Device& device) {
  if (before == nullptr) return {};
  std::string others;
  for (const auto& [function, hash] : device.executables()) {
    const Node* known = before->find(function);
    if (known != nullptr && known->text() != hash) others += (others.empty() ? "'" : "', '") + function;
  }
  if (others.empty()) return {};
  const std::string folder = executable_folder(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"));
  return error(ErrorKind::invalid,
               "exactness ends here: what {}' had been compiled to is no longer kept, and compiled anew is another",
               others)
      .hinted(fmt::format("bring back {} as it was where the run began, or go on with --set train.exact=false: from "
                          "the same bytes, but maybe other roundings",
                          folder.empty() ? "the cache of executables" : folder));
}

Status check_xla(const Workload& workload, const WorkloadSource& source) {
  struct Refused {
    bool asked;
    const char* key;
    const char* what;
    const char* hint;
  };
  const Refused all[] = {
      {workload.train.exact && workload.train.logical_shards % workload.num_devices() != 0, "train.logical_shards",
       "exact training on devices of unequal numbers of logical shards",
       "a mesh whose devices divide train.logical_shards, or --backend cpu"},
      {!workload.probe.all().empty(), "probe", "showing values", "leave probe out, or --backend cpu"},
      {workload.observe.replay_check.has_value(), "observe.replay_check", "the check of gradients",
       "leave observe.replay_check out, or --backend cpu"},
  };
  for (const Refused& one : all) {
    if (!one.asked) continue;
    return source.placed(error(ErrorKind::unsupported, "{} is not done through XLA yet", one.what).hinted(one.hint),
                         one.key);
  }
  return {};
}

std::optional<Note> compile_note(const Device& device) {
  const auto* xla = dynamic_cast<const XlaDevice*>(&device);
  if (xla == nullptr) return std::nullopt;
  Seconds took;
  std::size_t loaded = 0;
  for (const XlaCompiled& one : xla->compiled()) {
    took += one.time;
    loaded += one.kept_before ? 1 : 0;
  }
  std::string text = fmt::format("{} compiled, {} loaded", xla->compiled().size() - loaded, loaded);
  for (const auto& [name, value] : xla->flags()) text += fmt::format(", {}={}", name, pjrt::to_string(value));
  return Note{"info", std::move(text), "compile", took};
}

CompileWatch::CompileWatch(const Device& device)
    : device_(dynamic_cast<const XlaDevice*>(&device)), seen_(device_ == nullptr ? 0 : device_->compiled().size()) {}

std::vector<Note> CompileWatch::news() {
  std::vector<Note> notes;
  for (; device_ != nullptr && seen_ < device_->compiled().size(); ++seen_) {
    const XlaCompiled& one = device_->compiled()[seen_];
    if (one.again.empty() || told_ == kMost) continue;
    notes.push_back(
        {"warning",
         fmt::format("'{}' was {} anew after it had run: {}{}", one.function, one.kept_before ? "loaded" : "compiled",
                     one.again, ++told_ == kMost ? "; no more of this is told" : ""),
         "compile", one.time});
  }
  return notes;
}

Bytes temporaries_of(const Device& device) {
  Bytes most;
  for (const XlaCompiled& one : static_cast<const XlaDevice&>(device).compiled())
    most = std::max(most, one.memory.temporaries);
  return most;
}

Result<std::string> catalog_entry_of_xla(const std::string& backend, const std::string& kind, const Catalog& catalog) {
  if (backend == "xla-cpu") {
#ifdef SYSTOLE_HAS_CPU
    return default_entry(cpu_numerics(cpu_isa()));
#else
    return default_entry("");
#endif
  }
  for (const auto& [name, entry] : catalog.entries()) {
    for (const std::string& called : entry.called) {
      if (entry.kind == backend && lower_case(called) == lower_case(kind)) return name;
    }
  }
  return error(ErrorKind::not_found, "the catalog has no {} that its vendor calls '{}'",
               backend == "tpu" ? "TPU" : "GPU", kind)
      .hinted(fmt::format("enter it in a file of your own, {}/chips.yaml, as docs/guide/gpu-and-tpu.md shows",
                          user_catalog_folder(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"))));
}

}  // namespace systole

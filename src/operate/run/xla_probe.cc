#include "operate/run/xla_probe.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ground/base/clock.h"
#include "ground/base/files.h"
#include "ground/pjrt/client.h"
#include "ground/pjrt/places.h"
#include "ground/process/capture.h"
#include "operate/doctor/xla.h"

namespace systole {
namespace {

Result<Node> seen(const std::string& plugin, const std::string& folder, int wanted) {
  const std::unique_ptr<Clock> clock = real_clock();
  const Seconds began = clock->now();
  const pjrt::PluginPlace place = TRY(pjrt::find_plugin(plugin, folder));
  pjrt::prepare_environment(place, false);
  // Without a TPU there is no cloud metadata server either, which libtpu would query.
  if (plugin == "tpu" && device_files(plugin).empty()) ::setenv("TPU_SKIP_MDS_QUERY", "1", 0);
  const pjrt::Plugin loaded = TRY(pjrt::Plugin::load(place.path));
  std::vector<pjrt::NamedValue> options;
  if (plugin == "cpu") options.push_back({"cpu_device_count", std::int64_t{wanted}});
  const pjrt::Client client = TRY(pjrt::Client::create(loaded, options));
  Node devices = Node::sequence();
  const std::vector<pjrt::DeviceDescription> local = TRY(client.local());
  for (std::size_t d = 0; d < local.size(); ++d) {
    Node device = Node::map({{"id", local[d].id}, {"kind", local[d].kind}});
    const Result<pjrt::DeviceMemoryStats> memory = client.memory(static_cast<int>(d));
    if (memory.ok() && memory->limit) device.set("memory", memory->limit->count());
    devices.push(std::move(device));
  }
  return Node::map({{"platform", TRY(client.platform())},
                    {"api", to_string(loaded.version())},
                    {"warning", loaded.warning()},
                    {"devices", std::move(devices)},
                    {"seconds", (clock->now() - began).count()}});
}

// Plugins print many lines, or one long sentence; the first line names the problem.
std::string first_line(const std::string& text) {
  constexpr std::size_t kLongest = 300;
  return text.substr(0, std::min(text.find('\n'), kLongest));
}

}  // namespace

Result<Node> asked_in_child(Command command, Seconds timeout) {
  CaptureOptions limits;
  limits.timeout = timeout;
  const Captured child = TRY(run_captured(std::move(command), limits));
  if (child.timed_out) return error(ErrorKind::unsupported, "its process said nothing for {:g} s", timeout.count());
  // A plugin may print too; the document is the last line.
  const std::string out = child.out.substr(0, child.out.find_last_not_of('\n') + 1);
  Result<Node> said = parse_json(out.substr(out.rfind('\n') + 1), "the child");
  if (!child.exit.ok() || !said.ok()) {
    const std::string words = last_words(child.err);
    return error(ErrorKind::unsupported, "its process ended: {}{}", to_string(child.exit),
                 words.empty() ? "" : ": " + words);
  }
  if (said->find("error") != nullptr)
    return error(ErrorKind::unsupported, "{}", said->text_at("error")).hinted(said->text_at("hint"));
  return said;
}

Node devices_of_plugin(const std::string& plugin, const std::string& folder, int wanted) {
  Result<Node> document = seen(plugin, folder, wanted);
  if (document.ok()) return *std::move(document);
  return Node::map({{"error", first_line(document.error().message)}, {"hint", document.error().hint}});
}

Result<PluginDevices> probe_devices(const std::string& plugin, const std::string& folder, int wanted, Seconds timeout) {
  TRY(pjrt::find_plugin(plugin, folder));  // has its own hint
  Result<Node> said = asked_in_child({.argv = {"/proc/self/exe", "doctor", "devices", "--folder", folder, "--probe",
                                               plugin, "--ranks", std::to_string(wanted)}},
                                     timeout);
  if (!said.ok()) return std::move(said).error();
  PluginDevices result;
  result.platform = said->text_at("platform");
  result.api = said->text_at("api");
  result.warning = said->text_at("warning");
  result.time = Seconds(TRY(TRY(said->get("seconds"))->as_double()));
  for (const Node& device : TRY(said->get("devices"))->items()) {
    PluginDevice one;
    one.id = static_cast<int>(TRY(TRY(device.get("id"))->as_int(0)));
    one.kind = device.text_at("kind");
    if (const Node* memory = device.find("memory")) one.memory = Bytes(TRY(memory->as_int(0)));
    result.devices.push_back(std::move(one));
  }
  return result;
}

// Sources: the drivers of Cloud TPU and NVIDIA, which create these files.
std::vector<std::string> device_files(const std::string& plugin) {
  std::vector<std::string> found;
  for (const char* folder : {"/dev", "/dev/vfio"}) {
    for (const std::filesystem::path& path : paths_in(folder)) {
      const std::string name = path.filename().string();
      const auto numbered = [&](std::string_view start) {
        return name.size() > start.size() && name.rfind(start, 0) == 0 &&
               name.find_first_not_of("0123456789", start.size()) == std::string::npos;
      };
      const bool of_gpu = folder == std::string_view("/dev") && numbered("nvidia");
      const bool of_tpu = folder == std::string_view("/dev") ? numbered("accel") : numbered("");
      if ((of_gpu && plugin != "tpu") || (of_tpu && plugin != "gpu")) found.push_back(path.string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace systole

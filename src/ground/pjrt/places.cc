#include "ground/pjrt/places.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace systole::pjrt {
namespace {

struct PlaceRow {
  const char *name, *library;
};
constexpr PlaceRow kPlaces[] = {
    {"tpu", "libtpu/libtpu.so"},
    {"gpu", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
    {"cpu", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"},
    {"cpu-106", "fastatomstruct_xla_cpu/libpjrt_cpu.so"},
    {"cpu-81", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The first requirement in "libtpu==0.0.51 --hash=…\nkeep: …".
std::string version_in(const std::string& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("==");
    if (at == std::string::npos) continue;
    return line.substr(0, at) + " " + line.substr(at + 2, line.find(' ', at) - at - 2);
  }
  return "";
}

}  // namespace

std::vector<std::string> plugin_names() {
  std::vector<std::string> names;
  for (const PlaceRow& row : kPlaces) names.emplace_back(row.name);
  return names;
}

std::string plugins_folder(const std::string& said) {
  if (!said.empty()) return said;
  if (const std::string folder = variable("SYSTOLE_XLA_PLUGINS"); !folder.empty()) return folder;
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) return data + "/systole/xla-plugins";
  const std::string home = variable("HOME");
  return (home.empty() ? "/root" : home) + "/.local/share/systole/xla-plugins";
}

Result<PluginPlace> find_plugin(const std::string& name, const std::string& folder) {
  const PlaceRow* found = nullptr;
  for (const PlaceRow& row : kPlaces)
    if (name == row.name) found = &row;
  if (found == nullptr) return error(ErrorKind::invalid, "no plugin is called '{}'", name).hinted("tpu or gpu");
  PluginPlace place;
  place.name = name;
  place.path = folder + "/" + name + "/" + found->library;
  if (::access(place.path.c_str(), R_OK) != 0)
    return error(ErrorKind::unsupported, "XLA's plugin '{}' is not in {}", name, folder)
        .hinted(folder == plugins_folder() ? "tools/xla-plugins " + name
                                           : "tools/xla-plugins --folder " + folder + " " + name);
  place.version = version_in(folder + "/" + name + "/installed.txt");
  if (name == "tpu") {
    // Without the second, only one process of the machine may load libtpu, even without a device. Without the first, it
    // queries a cloud's metadata server, which outside that cloud blocks for minutes.
    place.deviceless = {{"TPU_SKIP_MDS_QUERY", "1"}, {"ALLOW_MULTIPLE_LIBTPU_LOAD", "1"}};
  }
  place.environment = {{"TF_CPP_MIN_LOG_LEVEL", "2"}};  // only errors in its own log
  return place;
}

void prepare_environment(const PluginPlace& place, bool deviceless) {
  for (const auto& [name, value] : place.environment) ::setenv(name.c_str(), value.c_str(), 0);
  if (!deviceless) return;
  for (const auto& [name, value] : place.deviceless) ::setenv(name.c_str(), value.c_str(), 0);
}

}  // namespace systole::pjrt

#include "operate/doctor/xla.h"

#include <fmt/ranges.h>

namespace systole {
namespace {

Finding examine_plugin(const XlaPluginFacts& plugin) {
  if (!plugin.there)
    return {plugin.name, Verdict::warn, fmt::format("not there; with it, {}", plugin.purpose), plugin.get};
  const std::string package = plugin.package.empty() ? plugin.path : plugin.package;
  if (plugin.problem) {
    return {plugin.name, Verdict::fail, fmt::format("{} does not work: {}", package, *plugin.problem),
            fmt::format("remove {} and get it again: {}", plugin.path, plugin.get)};
  }
  std::string text = fmt::format("{}, PJRT API {}", package, plugin.api);
  if (!plugin.stablehlo.empty()) text += fmt::format(", StableHLO up to {}", plugin.stablehlo);
  if (!plugin.did.empty()) text += fmt::format("; {} in {:.2g} s", plugin.did, plugin.time.count());
  if (!plugin.warning.empty())
    return {plugin.name, Verdict::warn, text + "; " + plugin.warning, "the version that was tried: " + plugin.get};
  return {plugin.name, Verdict::ok, std::move(text), ""};
}

}  // namespace

std::vector<Finding> examine_xla(const XlaFacts& facts) {
  std::vector<Finding> findings{{"folder", Verdict::ok, facts.folder, ""}};
  for (const XlaPluginFacts& plugin : facts.plugins) findings.push_back(examine_plugin(plugin));
  findings.push_back({"devices", Verdict::ok,
                      facts.devices.empty() ? "no TPU and no NVIDIA GPU here: programs are compiled, not run"
                                            : fmt::format("{}", fmt::join(facts.devices, ", ")),
                      ""});
  return findings;
}

std::string last_words(const std::string& text) {
  std::string last, worst;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    last = line;
    for (const char* word : {"Check failed", "rror:", "FATAL"})
      if (line.find(word) != std::string::npos) worst = line;
  }
  constexpr std::size_t kLongest = 300;
  return (worst.empty() ? last : worst).substr(0, kLongest);
}

}  // namespace systole

#pragma once
// Vendors' plugins for tests. A test is skipped if tools/xla-plugins has not installed its plugin; CI has all but the
// GPU's. A plugin stays in the process, so each is loaded once.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "ground/pjrt/places.h"
#include "ground/pjrt/topology.h"

namespace systole::pjrt {

// Null if not installed.
inline const Plugin* plugin(const std::string& name) {
  static std::map<std::string, Plugin> loaded;
  if (const auto at = loaded.find(name); at != loaded.end()) return &at->second;
  const Result<PluginPlace> place = find_plugin(name, plugins_folder());
  if (!place.ok()) return nullptr;
  prepare_environment(*place, true);
  return &loaded.emplace(name, Plugin::load(place->path).value()).first->second;
}

#define NEEDS(name)                                                        \
  const ::systole::pjrt::Plugin* const it = ::systole::pjrt::plugin(name); \
  if (it == nullptr) GTEST_SKIP() << "no plugin: tools/xla-plugins " << (name)

// Two ops: a matrix product and a tanh.
inline constexpr const char* kTwoOps = R"(
module @two_ops {
  func.func public @main(%a: tensor<256x512xbf16>, %b: tensor<512x128xbf16>) -> tensor<256x128xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<256x512xbf16>, tensor<512x128xbf16>) -> tensor<256x128xf32>
    %1 = stablehlo.tanh %0 : tensor<256x128xf32>
    return %1 : tensor<256x128xf32>
  }
})";

inline double cost(const Executable& executable, const std::string& name) {
  const std::vector<NamedValue> costs = executable.costs().value();
  const NamedValue* value = find(costs, name);
  return value == nullptr ? -1 : std::get<float>(value->value);
}

}  // namespace systole::pjrt

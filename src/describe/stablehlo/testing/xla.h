#pragma once
// Runs modules on XLA's CPU plugin with any number of devices. Without the plugin a test is skipped:
//
//   NEEDS("cpu");
//   const auto got = run(*it, lower(graph), inputs);

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>

#include "describe/stablehlo/module.h"
#include "ground/pjrt/client.h"
#include "ground/pjrt/testing/vendors_plugin.h"
#include "ground/tensor/buffer.h"

namespace systole::stablehlo {

using pjrt::plugin;  // for NEEDS
using Plugin = pjrt::Plugin;
using DeviceValues = std::vector<std::vector<HostTensor>>;  // [device][value]

// One client per plugin and number of devices, because starting one is slow.
inline const pjrt::Client& client_of(const Plugin& plugin, int devices) {
  static std::map<std::pair<std::string, int>, pjrt::Client> clients;
  const auto key = std::pair(plugin.path(), devices);
  if (const auto at = clients.find(key); at != clients.end()) return at->second;
  pjrt::Client made = pjrt::Client::create(plugin, {{"cpu_device_count", std::int64_t{devices}}}).value();
  return clients.emplace(key, std::move(made)).first->second;
}

inline pjrt::CompileOptions options_of(const Module& module) {
  pjrt::CompileOptions options;
  options.partitions = module.devices;
  options.spmd = options.shardy = module.devices > 1;
  options.devices.resize(static_cast<std::size_t>(module.devices));
  std::iota(options.devices.begin(), options.devices.end(), 0);
  options.flags = {{"xla_cpu_enable_fast_min_max", false},                // true would lose NaN, contrary to StableHLO
                   {"xla_backend_optimization_level", std::int64_t{0}}};  // modules run once
  return options;
}

inline HostTensor downloaded(const pjrt::Buffer& buffer, const Type& type) {
  HostTensor tensor(type.dtype, type.shape);
  if (tensor.size() == 0) return tensor;
  const Status done = buffer.copy_to(tensor.bytes()).value().wait();
  if (!done.ok()) fail(done.error());
  return tensor;
}

// A compiled module that can run any number of times.
class Compiled {
 public:
  Compiled(const Plugin& plugin, const Module& module)
      : module_(module),
        client_(client_of(plugin, module.devices)),
        program_(client_.compile({.code = module.text}, options_of(module)).value()) {}

  DeviceValues run(const DeviceValues& arguments) const {
    std::vector<std::vector<pjrt::Buffer>> buffers(arguments.size());
    std::vector<std::vector<const pjrt::Buffer*>> borrowed(arguments.size());
    for (std::size_t d = 0; d < arguments.size(); ++d) {
      for (const HostTensor& value : arguments[d])
        buffers[d].push_back(client_.upload(value.bytes(), value.dtype(), value.shape(), static_cast<int>(d)).value());
      for (const pjrt::Buffer& buffer : buffers[d]) borrowed[d].push_back(&buffer);
    }
    const std::vector<pjrt::DeviceRun> runs = program_.run(borrowed).value();
    DeviceValues results(runs.size());
    for (std::size_t d = 0; d < runs.size(); ++d) {
      for (std::size_t i = 0; i < module_.results.size(); ++i)
        results[d].push_back(downloaded(runs[d].outputs[i], module_.results[i].local));
    }
    return results;
  }

  pjrt::MemoryStats memory() const { return program_.executable().value().memory().value(); }

 private:
  Module module_;
  const pjrt::Client& client_;
  pjrt::LoadedExecutable program_;
};

// For one device.
inline std::vector<HostTensor> run(const Plugin& plugin, const Module& module, std::vector<HostTensor> inputs) {
  DeviceValues arguments;
  arguments.push_back(std::move(inputs));
  return Compiled(plugin, module).run(arguments)[0];
}

}  // namespace systole::stablehlo

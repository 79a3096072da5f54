#pragma once
// What the devices of a process share: the plugin's client, the programs that were compiled, and the place where the
// threads of a mesh bring what they call with.

#include <map>
#include <mutex>

#include "describe/stablehlo/module.h"
#include "execute/backends/xla/xla.h"

namespace systole {

class XlaClient {
 public:
  // A module's program, and what is told of it.
  struct Made {
    pjrt::LoadedExecutable program;
    XlaCompiled record;
  };

  static Result<std::shared_ptr<XlaClient>> open(const pjrt::Plugin& plugin, const XlaOptions& options);

  const pjrt::Client& client() const { return client_; }
  const std::vector<pjrt::DeviceDescription>& devices() const { return devices_; }
  const std::string& platform() const { return platform_; }
  const XlaOptions& options() const { return options_; }
  const std::string& api() const { return api_; }
  const std::string& versions() const { return versions_; }

  // The first of a mesh that asks compiles, the others are given the same. Errors: those of the plugin.
  Result<Made> make(const std::string& function, const stablehlo::Module& module);

  // One call by all devices of a program: each brings its arguments, and when all have, device 0 launches it. The
  // threads are kept apart by `ranks`. Errors: of the plugin, told on every device; of the communicator; internal: they
  // came with different programs.
  Result<pjrt::DeviceRun> call(const pjrt::LoadedExecutable& program, const std::vector<const pjrt::Buffer*>& arguments,
                               int device, Communicator& ranks);

 private:
  XlaClient(pjrt::Client client, XlaOptions options) : client_(std::move(client)), options_(std::move(options)) {}
  Result<pjrt::LoadedExecutable> compiled_or_kept(const stablehlo::Module& module, XlaCompiled& record) const;
  pjrt::CompileOptions compiling(int devices) const;
  Status launch(const pjrt::LoadedExecutable& program, std::int32_t devices);

  pjrt::Client client_;
  XlaOptions options_;
  std::vector<pjrt::DeviceDescription> devices_;
  std::string platform_, api_, versions_;
  std::mutex mutex_;                                         // of made_
  std::map<std::string, Made> made_;                         // of several devices, by their text
  std::vector<std::vector<const pjrt::Buffer*>> arguments_;  // per device, between the barriers of a call
  std::vector<const pjrt::LoadedExecutable*> programs_;      // the same
  std::vector<pjrt::DeviceRun> runs_;
  Status launched_;
};

}  // namespace systole

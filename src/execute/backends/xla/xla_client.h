#pragma once
// State shared by the devices of a process: the plugin's client, the compiled programs, and the rendezvous where the
// threads of a mesh bring the arguments of a call.

#include <map>
#include <mutex>

#include "describe/stablehlo/module.h"
#include "execute/backends/xla/xla.h"

namespace systole {

class XlaClient {
 public:
  // A module's compiled program and its record.
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

  // The first thread of a mesh compiles; the others get the same program. Errors: those of the plugin.
  Result<Made> make(const std::string& function, const stablehlo::Module& module);

  // One call on all devices of a program: each thread brings its arguments, and when all have arrived, device 0
  // launches it. `ranks` synchronizes the threads. Errors: of the plugin, returned on every device; of the
  // communicator; internal (the threads brought different programs).
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
  std::mutex mutex_;                                         // guards made_
  std::map<std::string, Made> made_;                         // for several devices, by module text
  std::vector<std::vector<const pjrt::Buffer*>> arguments_;  // per device, between the barriers of a call
  std::vector<const pjrt::LoadedExecutable*> programs_;      // likewise
  std::vector<pjrt::DeviceRun> runs_;
  Status launched_;
};

}  // namespace systole

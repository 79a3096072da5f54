#include "execute/backends/xla/xla_client.h"

#include <chrono>

#include "execute/runtime/communicator.h"
#include "ground/base/hash.h"

namespace systole {

Result<std::shared_ptr<XlaClient>> XlaClient::open(const pjrt::Plugin& plugin, const XlaOptions& options) {
  CHECK(options.devices >= 1, "{} devices are wanted", options.devices);
  std::vector<pjrt::NamedValue> asked;
  if (options.makes_devices) asked.push_back({"cpu_device_count", std::int64_t{options.devices}});
  pjrt::Client client = TRY(pjrt::Client::create(plugin, asked));
  std::shared_ptr<XlaClient> made(new XlaClient(std::move(client), options));  // the constructor is private
  made->devices_ = TRY(made->client_.local());
  made->platform_ = TRY(made->client_.platform());
  made->api_ = to_string(plugin.version());
  if (static_cast<int>(made->devices_.size()) < options.devices) {
    const std::string seen =
        made->devices_.empty() ? "none" : fmt::format("{} ({})", made->devices_.size(), made->devices_[0].kind);
    return error(ErrorKind::unsupported, "devices: {} wanted, and this process sees {}", options.devices, seen)
        .hinted("a mesh of no more than there are; systole doctor devices tells what is seen");
  }
  if (made->platform_ == "cpu") {
    made->options_.lowering.wide_products = true;
    made->options_.flags.emplace_back("xla_cpu_enable_fast_min_max", false);  // else NaN is lost in min and max
  }
  const std::string kind = made->devices_.empty() ? "" : made->devices_[0].kind;
  made->versions_ = fmt::format("{} (XLA {}, {}); {}", kind, made->platform_, made->api_, TRY(made->client_.version()));
  made->arguments_.resize(made->devices_.size());
  return made;
}

pjrt::CompileOptions XlaClient::compiling(int devices) const {
  pjrt::CompileOptions options;
  options.flags = options_.flags;
  if (devices == 1) return options;
  options.partitions = devices;
  options.spmd = options.shardy = true;
  for (int d = 0; d < devices; ++d) options.devices.push_back(devices_[static_cast<std::size_t>(d)].id);
  return options;
}

Result<pjrt::LoadedExecutable> XlaClient::compiled_or_kept(const stablehlo::Module& module, bool& kept) const {
  const pjrt::CompileOptions options = compiling(module.devices);
  if (options_.cache == nullptr) return client_.compile({.code = module.text}, options);
  Hasher hasher;
  for (const std::string& part : {versions_, pjrt::serialized(options), module.text}) hasher.add(part);
  const std::string key = to_hex(hasher.digest());
  if (const std::optional<std::string> bytes = options_.cache->find(key)) {
    Result<pjrt::LoadedExecutable> loaded = client_.load(*bytes);
    kept = loaded.ok();
    if (kept) return loaded;  // what does not load is made anew
  }
  pjrt::LoadedExecutable program = TRY(client_.compile({.code = module.text}, options));
  // Not every plugin can write its programs down.
  const Result<std::string> bytes = TRY(program.executable()).serialized();
  if (bytes.ok()) options_.cache->keep(key, *bytes);
  return program;
}

Result<XlaClient::Made> XlaClient::make(const std::string& function, const stablehlo::Module& module) {
  const std::scoped_lock lock(mutex_);
  if (const auto made = made_.find(module.text); made != made_.end()) return made->second;
  const auto began = std::chrono::steady_clock::now();
  XlaCompiled record;
  record.function = function;
  pjrt::LoadedExecutable program = TRY(compiled_or_kept(module, record.kept_before));
  record.memory = TRY(TRY(program.executable()).memory());
  record.notes = module.notes;
  record.time = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  Made made{std::move(program), std::move(record)};
  if (module.devices > 1) made_.emplace(module.text, made);
  return made;
}

Result<pjrt::DeviceRun> XlaClient::call(const pjrt::LoadedExecutable& program,
                                        const std::vector<const pjrt::Buffer*>& arguments, int device,
                                        Communicator& ranks) {
  const auto own = static_cast<std::size_t>(device);
  arguments_[own] = arguments;
  TRY(ranks.barrier());
  if (device == 0) {
    const auto first = arguments_.begin();
    Result<std::vector<pjrt::DeviceRun>> runs = program.run({first, first + ranks.num_ranks()});
    launched_ = runs.ok() ? Status() : Status(runs.error());
    if (runs.ok()) runs_ = std::move(*runs);
  }
  TRY(ranks.barrier());
  // Both stay as they are until all have come to the next call.
  TRY(launched_);
  return std::move(runs_[own]);
}

}  // namespace systole

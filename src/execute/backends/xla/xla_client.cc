#include "execute/backends/xla/xla_client.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "execute/runtime/communicator.h"
#include "ground/base/hash.h"

namespace systole {

// openxla/xla xla/xla.proto (DebugOptions), as of 2026-06: the first refuses ops without a deterministic kernel and
// implies the second, which is set for plugins where it does not.
pjrt::CompilerFlags exact_flags(std::string_view platform) {
  if (platform == "cuda" || platform == "rocm")
    return {{"xla_gpu_deterministic_ops", true}, {"xla_gpu_exclude_nondeterministic_ops", true}};
  // Eigen splits a product by its number of threads.
  if (platform == "cpu") return {{"xla_cpu_multi_thread_eigen", false}};
  return {};
}

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
  if (options.flags_of && !made->devices_.empty())
    made->options_.flags = pjrt::flags_over(TRY(options.flags_of(made->devices_[0].kind)), options.flags);
  if (options.exact) std::ranges::copy(exact_flags(made->platform_), std::back_inserter(made->options_.flags));
  if (made->platform_ == "cpu") {
    made->options_.lowering.wide_products = true;
    made->options_.flags.emplace_back("xla_cpu_enable_fast_min_max", false);  // otherwise min and max lose NaN
  }
  const std::string kind = made->devices_.empty() ? "" : made->devices_[0].kind;
  made->versions_ = fmt::format("{} (XLA {}, {}); {}", kind, made->platform_, made->api_, TRY(made->client_.version()));
  made->arguments_.resize(made->devices_.size());
  made->programs_.resize(made->devices_.size());
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

Result<pjrt::LoadedExecutable> XlaClient::compiled_or_kept(const stablehlo::Module& module, XlaCompiled& record) const {
  const pjrt::CompileOptions options = compiling(module.devices);
  if (options_.cache == nullptr && !options_.exact) return client_.compile({.code = module.text}, options);
  Hasher hasher;
  for (const std::string& part : {versions_, pjrt::serialized(options), module.text}) hasher.add(part);
  const std::string key = to_hex(hasher.digest());
  const auto hash_of_exact = [&](const std::string& bytes) {
    if (options_.exact) record.hash = to_hex(hash128(bytes));
  };
  if (const auto bytes = options_.cache ? options_.cache->find(key) : std::nullopt) {
    Result<pjrt::LoadedExecutable> loaded = client_.load(*bytes);
    record.kept_before = loaded.ok();
    if (loaded.ok()) hash_of_exact(*bytes);
    if (loaded.ok()) return loaded;  // on failure, compile again
  }
  pjrt::LoadedExecutable program = TRY(client_.compile({.code = module.text}, options));
  // Some plugins cannot serialize executables.
  const Result<std::string> bytes = TRY(program.executable()).serialized();
  if (!bytes.ok() && options_.exact) {
    return error(ErrorKind::unsupported, "exact: {} cannot write '{}' down, so that a run could go on with it: {}",
                 versions_, record.function, bytes.error().message)
        .hinted("train.exact: false");
  }
  if (!bytes.ok()) return program;
  hash_of_exact(*bytes);
  if (options_.cache) options_.cache->keep(key, *bytes);
  return program;
}

Result<XlaClient::Made> XlaClient::make(const std::string& function, const stablehlo::Module& module) {
  const std::scoped_lock lock(mutex_);
  if (const auto made = made_.find(module.text); made != made_.end()) return made->second;
  const auto began = std::chrono::steady_clock::now();
  XlaCompiled record;
  record.function = function;
  pjrt::LoadedExecutable program = TRY(compiled_or_kept(module, record));
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
  programs_[own] = &program;
  TRY(ranks.barrier());
  if (device == 0) launched_ = launch(program, ranks.num_ranks());
  TRY(ranks.barrier());
  // Both are unchanged until all threads arrive at the next call.
  TRY(launched_);
  return std::move(runs_[own]);
}

Status XlaClient::launch(const pjrt::LoadedExecutable& program, std::int32_t devices) {
  for (std::int32_t d = 0; d < devices; ++d) {
    if (!programs_[static_cast<std::size_t>(d)]->is(program))
      return error(ErrorKind::internal, "devices 0 and {} came to a call with different programs", d);
  }
  runs_ = TRY(program.run({arguments_.begin(), arguments_.begin() + devices}));
  return {};
}

}  // namespace systole

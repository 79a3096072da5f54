#include "execute/backends/xla/xla.h"

#include <algorithm>
#include <chrono>

#include "describe/stablehlo/module.h"
#include "execute/backends/xla/xla_memory.h"
#include "ground/base/hash.h"

namespace systole {
namespace {

struct XlaExecutable : Executable {
  XlaExecutable(std::string n, pjrt::LoadedExecutable p, std::vector<bool> gone)
      : name(std::move(n)), program(std::move(p)), donated(std::move(gone)) {}
  std::string name;
  pjrt::LoadedExecutable program;
  std::vector<bool> donated;  // per argument
};

struct XlaCall : Call {
  const XlaExecutable* executable = nullptr;
  XlaMemory* memory = nullptr;
  std::vector<SlotAddress> inputs, outputs;
  std::vector<std::vector<const pjrt::Buffer*>> arguments;  // of the one device; its places are used again and again
};

class PendingEvent : public DeviceEvent::Pending {
 public:
  explicit PendingEvent(pjrt::Event event) : event_(std::move(event)) {}
  Status wait() override { return event_.wait(); }

 private:
  pjrt::Event event_;
};

DeviceEvent pending(pjrt::Event event) { return DeviceEvent(std::make_shared<PendingEvent>(std::move(event))); }

class Xla : public XlaDevice {
 public:
  Xla(pjrt::Client client, Target target, const XlaOptions& options, std::string versions)
      : client_(std::move(client)), target_(std::move(target)), options_(options), versions_(std::move(versions)) {}

  const Target& target() const override { return target_; }
  Bytes workspace(const Graph&, const GraphNode&) const override { return Bytes(0); }
  const std::vector<XlaCompiled>& compiled() const override { return compiled_; }

  bool host_sees_memory() const override { return false; }

  Result<std::unique_ptr<Memory>> allocate(Bytes bytes) override {
    return std::unique_ptr<Memory>(std::make_unique<XlaMemory>(bytes));
  }

  DeviceEvent copy_in(Memory& memory, const SlotAddress& to, std::span<const std::byte> from) override {
    Result<pjrt::Buffer> buffer = client_.upload(from, to.type->dtype, to.type->shape, options_.device);
    if (!buffer.ok()) return DeviceEvent::failed(std::move(buffer).error());
    static_cast<XlaMemory&>(memory).put(to, std::move(*buffer));
    return {};
  }

  DeviceEvent copy_out(Memory& memory, const SlotAddress& from, std::span<std::byte> into) override {
    const pjrt::Buffer* buffer = static_cast<XlaMemory&>(memory).find(from);
    if (buffer == nullptr) {
      return DeviceEvent::failed(
          error(ErrorKind::internal, "slot {} of value {} is read before anything was written", from.slot, from.value));
    }
    Result<pjrt::Event> done = buffer->copy_to(into);
    return done.ok() ? pending(std::move(*done)) : DeviceEvent::failed(std::move(done).error());
  }

  Result<std::unique_ptr<Executable>> compile(const Function& function) override {
    const auto began = std::chrono::steady_clock::now();
    stablehlo::Module module;
    try {
      module = stablehlo::lower(function, options_.lowering);
    } catch (const Failure& failure) { return failure.error(); }
    XlaCompiled record;
    record.function = function.name;
    pjrt::LoadedExecutable program = TRY(compiled_or_kept(module.text, record.kept_before));
    record.memory = TRY(TRY(program.executable()).memory());
    record.notes = std::move(module.notes);
    record.time = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    compiled_.push_back(std::move(record));
    return std::make_unique<XlaExecutable>(function.name, std::move(program), std::move(module.donated));
  }

  Result<std::unique_ptr<Call>> bind(const Executable& executable, Memory& memory,
                                     const Addresses& addresses) override {
    auto call = std::make_unique<XlaCall>();
    call->executable = static_cast<const XlaExecutable*>(&executable);
    call->memory = static_cast<XlaMemory*>(&memory);
    call->inputs.assign(addresses.inputs.begin(), addresses.inputs.end());
    call->outputs.assign(addresses.outputs.begin(), addresses.outputs.end());
    call->arguments.resize(1);
    return call;
  }

  DeviceEvent run(Call& bound, WorkCounters& counters) override {
    auto& call = static_cast<XlaCall&>(bound);
    std::vector<const pjrt::Buffer*>& arguments = call.arguments[0];
    arguments.clear();
    for (const SlotAddress& input : call.inputs) {
      arguments.push_back(call.memory->find(input));
      if (arguments.back() == nullptr) {
        return DeviceEvent::failed(error(ErrorKind::internal,
                                         "'{}' reads slot {} of value {}, which nothing has written",
                                         call.executable->name, input.slot, input.value));
      }
    }
    Result<std::vector<pjrt::DeviceRun>> runs = call.executable->program.run(call.arguments);
    if (!runs.ok()) return DeviceEvent::failed(std::move(runs).error());
    // What was donated is gone, wherever its place went.
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.executable->donated[i]) call.memory->remove(call.inputs[i]);
    }
    pjrt::DeviceRun& done = runs->front();
    for (std::size_t i = 0; i < call.outputs.size(); ++i) call.memory->put(call.outputs[i], std::move(done.outputs[i]));
    ++counters.calls;
    return pending(std::move(done.done));
  }

  std::vector<std::string> kernels_used() const override {
    std::vector<std::string> lines;
    for (const XlaCompiled& one : compiled_) {
      lines.push_back(fmt::format("{}: {}, {} in {:.2f} s, {} of temporaries", one.function, target_.name,
                                  one.kept_before ? "loaded" : "compiled", one.time.count(),
                                  to_string(one.memory.temporaries)));
      for (const std::string& note : one.notes) lines.push_back("  " + note);
    }
    return lines;
  }

 private:
  Result<pjrt::LoadedExecutable> compiled_or_kept(const std::string& text, bool& kept) {
    pjrt::CompileOptions compiling;
    compiling.flags = options_.flags;
    if (options_.cache == nullptr) return client_.compile({.code = text}, compiling);
    Hasher hasher;
    for (const std::string& part : {versions_, pjrt::serialized(compiling), text}) hasher.add(part);
    const std::string key = to_hex(hasher.digest());
    if (const std::optional<std::string> bytes = options_.cache->find(key)) {
      Result<pjrt::LoadedExecutable> loaded = client_.load(*bytes);
      kept = loaded.ok();
      if (kept) return loaded;  // what does not load is made anew
    }
    pjrt::LoadedExecutable program = TRY(client_.compile({.code = text}, compiling));
    // Not every plugin can write its programs down.
    const Result<std::string> bytes = TRY(program.executable()).serialized();
    if (bytes.ok()) options_.cache->keep(key, *bytes);
    return program;
  }

  pjrt::Client client_;
  Target target_;
  XlaOptions options_;
  std::string versions_;
  std::vector<XlaCompiled> compiled_;
};

}  // namespace

Result<std::unique_ptr<XlaDevice>> make_xla_device(const pjrt::Plugin& plugin, const XlaOptions& options) {
  pjrt::Client client = TRY(pjrt::Client::create(plugin));
  const std::vector<pjrt::DeviceDescription> devices = TRY(client.local());
  if (options.device < 0 || static_cast<std::size_t>(options.device) >= devices.size()) {
    return error(ErrorKind::invalid, "there is no device {}: {} has {}", options.device, TRY(client.platform()),
                 devices.size());
  }
  Target target;
  target.name = fmt::format("{} (XLA {}, {})", devices[static_cast<std::size_t>(options.device)].kind,
                            TRY(client.platform()), to_string(plugin.version()));
  target.kind = "xla";
  target.whole_steps = true;
  target.dtypes = {DType::f32, DType::bf16, DType::f16};
  // Not every plugin counts its memory.
  if (const Result<pjrt::DeviceMemoryStats> memory = client.memory(options.device); memory.ok() && memory->limit)
    target.memory_limit = *memory->limit;
  XlaOptions chosen = options;
  if (TRY(client.platform()) == "cpu") {
    chosen.lowering.wide_products = true;
    chosen.flags.emplace_back("xla_cpu_enable_fast_min_max", false);  // else NaN is lost in min and max
  }
  std::string versions = fmt::format("{}; {}", target.name, TRY(client.version()));
  return std::unique_ptr<XlaDevice>(
      std::make_unique<Xla>(std::move(client), std::move(target), chosen, std::move(versions)));
}

}  // namespace systole

#include "execute/backends/xla/xla.h"

#include <algorithm>
#include <map>

#include "execute/backends/xla/xla_client.h"
#include "execute/backends/xla/xla_memory.h"

namespace systole {
namespace {

struct XlaExecutable : Executable {
  explicit XlaExecutable(pjrt::LoadedExecutable p) : program(std::move(p)) {}
  std::string name;
  pjrt::LoadedExecutable program;
  int devices = 1;
  std::vector<std::size_t> inputs;  // per argument: index of the function's input
  std::vector<bool> donated;        // per argument
};

struct XlaCall : Call {
  const XlaExecutable* executable = nullptr;
  XlaMemory* memory = nullptr;
  std::vector<SlotAddress> inputs, outputs;                 // inputs: per argument
  std::vector<std::vector<const pjrt::Buffer*>> arguments;  // of this device; reused by each call
};

class PendingEvent : public DeviceEvent::Pending {
 public:
  explicit PendingEvent(pjrt::Event event) : event_(std::move(event)) {}
  Status wait() override { return event_.wait(); }

 private:
  pjrt::Event event_;
};

DeviceEvent pending(pjrt::Event event) { return DeviceEvent(std::make_shared<PendingEvent>(std::move(event))); }

// The inputs of a function, to explain a later recompilation.
std::vector<std::pair<std::string, Type>> inputs_of(const Function& function) {
  std::vector<std::pair<std::string, Type>> inputs;
  for (const GraphInput& input : function.graph.inputs())
    inputs.emplace_back(input.name, function.graph.type(input.value));
  return inputs;
}

std::string difference(const std::vector<std::pair<std::string, Type>>& before,
                       const std::vector<std::pair<std::string, Type>>& now) {
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    const auto& [name, type] = now[i];
    const Type& old = before[i].second;
    if (name != before[i].first) return fmt::format("input {} is '{}' and was '{}'", i, name, before[i].first);
    for (int d = 0; d < std::min(type.ndim(), old.ndim()); ++d) {
      if (type.size(d) == old.size(d)) continue;
      return fmt::format("dim {} ({}) of input '{}' is {} and was {}", d, type.name(d), name, type.size(d),
                         old.size(d));
    }
    if (type.ndim() != old.ndim() || type.dtype != old.dtype)
      return fmt::format("input '{}' is {} and was {}", name, to_string(type), to_string(old));
  }
  return before.size() == now.size() ? "" : fmt::format("it takes {} inputs and took {}", now.size(), before.size());
}

class Xla : public XlaDevice {
 public:
  Xla(std::shared_ptr<XlaClient> client, int number)
      : client_(std::move(client)), number_(number), kind_(client_->devices()[static_cast<std::size_t>(number)].kind) {
    target_.name = fmt::format("{} (XLA {}, {})", kind_, client_->platform(), client_->api());
    target_.kind = "xla";
    target_.whole_steps = true;
    target_.dtypes = {DType::f32, DType::bf16, DType::f16};
    // Some plugins do not report memory.
    if (const Result<pjrt::DeviceMemoryStats> memory = client_->client().memory(number); memory.ok() && memory->limit)
      target_.memory_limit = *memory->limit;
  }

  const Target& target() const override { return target_; }
  const std::string& kind() const override { return kind_; }
  Bytes workspace(const Graph&, const GraphNode&) const override { return Bytes(0); }
  const std::string& numerics() const override { return client_->versions(); }
  const pjrt::CompilerFlags& flags() const override { return client_->options().flags; }
  const std::vector<XlaCompiled>& compiled() const override { return compiled_; }
  std::map<std::string, std::string> executables() const override {
    std::map<std::string, std::string> hashes;
    for (const XlaCompiled& one : compiled_) {
      if (!one.hash.empty()) hashes.insert_or_assign(one.function, one.hash);
    }
    return hashes;
  }

  bool host_sees_memory() const override { return false; }
  bool runs_ahead() const override { return true; }
  void connect(Communicator* ranks) override { ranks_ = ranks; }

  Result<std::unique_ptr<Memory>> allocate(Bytes bytes) override {
    return std::unique_ptr<Memory>(std::make_unique<XlaMemory>(bytes));
  }

  DeviceEvent copy_in(Memory& memory, const SlotAddress& to, std::span<const std::byte> from) override {
    Result<pjrt::Buffer> buffer = client_->client().upload(from, to.type->dtype, to.type->shape, number_);
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
    return compiled_as(function, [&] { return stablehlo::lower(function, client_->options().lowering); });
  }
  Result<std::unique_ptr<Executable>> compile_of(const Program& program, const Function& function) override {
    if (program.mesh.num_devices() == 1) return compile(function);
    return compiled_as(function, [&] { return stablehlo::lower(program, function, client_->options().lowering); });
  }

  Result<std::unique_ptr<Call>> bind(const Executable& executable, Memory& memory,
                                     const Addresses& addresses) override {
    auto call = std::make_unique<XlaCall>();
    call->executable = static_cast<const XlaExecutable*>(&executable);
    call->memory = static_cast<XlaMemory*>(&memory);
    for (const std::size_t input : call->executable->inputs) call->inputs.push_back(addresses.inputs[input]);
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
    Result<pjrt::DeviceRun> run = launched(call);
    if (!run.ok()) return DeviceEvent::failed(std::move(run).error());
    // Donated inputs are gone, whether or not their slots are reused.
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.executable->donated[i]) call.memory->remove(call.inputs[i]);
    }
    for (std::size_t i = 0; i < call.outputs.size(); ++i) call.memory->put(call.outputs[i], std::move(run->outputs[i]));
    ++counters.calls;
    ran_ = true;
    return pending(std::move(run->done));
  }

  std::vector<std::string> kernels_used() const override {
    std::vector<std::string> lines;
    int loaded = 0;
    Seconds sum;
    for (const XlaCompiled& one : compiled_) {
      lines.push_back(fmt::format("{}: {}, {} in {:.2f} s, {} of temporaries", one.function, target_.name,
                                  one.kept_before ? "loaded" : "compiled", one.time.count(),
                                  to_string(one.memory.temporaries)));
      for (const std::string& note : one.notes) lines.push_back("  " + note);
      if (!one.again.empty()) lines.push_back(fmt::format("  compiled anew after it was run: {}", one.again));
      loaded += one.kept_before ? 1 : 0;
      sum += one.time;
    }
    lines.push_back(fmt::format("{} compiled and {} loaded in {:.2f} s",
                                compiled_.size() - static_cast<std::size_t>(loaded), loaded, sum.count()));
    return lines;
  }

 private:
  template <typename Lower>
  Result<std::unique_ptr<Executable>> compiled_as(const Function& function, const Lower& lowered) {
    stablehlo::Module module;
    try {
      module = lowered();
    } catch (const Failure& failure) { return failure.error(); }
    if (module.devices > static_cast<int>(client_->devices().size()))
      return error(ErrorKind::unsupported, "'{}' is for {} devices, and there are {}", function.name, module.devices,
                   client_->devices().size());
    XlaClient::Made made = TRY(client_->make(function.name, module));
    auto executable = std::make_unique<XlaExecutable>(std::move(made.program));
    executable->name = function.name;
    executable->devices = module.devices;
    executable->donated = std::move(module.donated);
    // A device knows its coordinates: they are not passed as arguments.
    for (std::size_t i = 0; i < function.graph.inputs().size(); ++i) {
      const std::size_t next = executable->inputs.size();
      if (next < module.arguments.size() && module.arguments[next].name == function.graph.inputs()[i].name)
        executable->inputs.push_back(i);
    }
    CHECK(executable->inputs.size() == module.arguments.size(), "'{}' takes {} arguments, {} of them are its inputs",
          function.name, module.arguments.size(), executable->inputs.size());
    auto inputs = inputs_of(function);
    const auto before = known_.find(function.name);
    if (ran_ && before != known_.end()) made.record.again = difference(before->second, inputs);
    known_.insert_or_assign(function.name, std::move(inputs));
    compiled_.push_back(std::move(made.record));
    return executable;
  }

  Result<pjrt::DeviceRun> launched(XlaCall& call) {
    if (call.executable->devices == 1) {
      std::vector<pjrt::DeviceRun> runs = TRY(call.executable->program.run(call.arguments));
      return std::move(runs[0]);
    }
    if (ranks_ == nullptr) {
      return error(ErrorKind::unsupported, "'{}' is for {} devices, and this one is connected to no other",
                   call.executable->name, call.executable->devices);
    }
    return client_->call(call.executable->program, call.arguments[0], number_, *ranks_);
  }

  std::shared_ptr<XlaClient> client_;
  int number_;
  std::string kind_;
  Target target_;
  Communicator* ranks_ = nullptr;
  bool ran_ = false;
  std::vector<XlaCompiled> compiled_;
  std::map<std::string, std::vector<std::pair<std::string, Type>>> known_;  // inputs of compiled functions
};

class Host : public XlaHost {
 public:
  explicit Host(std::shared_ptr<XlaClient> client) : client_(std::move(client)) {}
  int num_devices() const override { return static_cast<int>(client_->devices().size()); }
  Result<std::unique_ptr<XlaDevice>> device(int number) override {
    if (number < 0 || number >= num_devices()) {
      return error(ErrorKind::invalid, "there is no device {}: {} has {}", number, client_->platform(), num_devices());
    }
    return std::unique_ptr<XlaDevice>(std::make_unique<Xla>(client_, number));
  }

 private:
  std::shared_ptr<XlaClient> client_;
};

}  // namespace

Result<std::shared_ptr<XlaHost>> open_xla(const pjrt::Plugin& plugin, const XlaOptions& options) {
  return std::shared_ptr<XlaHost>(std::make_shared<Host>(TRY(XlaClient::open(plugin, options))));
}

}  // namespace systole

#include "execute/backends/cpu/cpu.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "execute/backends/cpu/cpu_isa.h"
#include "execute/backends/cpu/dnnl_library.h"
#include "execute/backends/cpu/kernels/team_cores.h"
#include "execute/backends/cpu/node_call.h"
#include "execute/runtime/arena_memory.h"
#include "execute/runtime/collective_kernel.h"
#include "execute/runtime/flatten.h"

namespace systole {
namespace {

int cores_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

class CpuExecutable : public Executable {
 public:
  explicit CpuExecutable(const Function& f) : function(f) {}
  const Function& function;
  mutable std::map<std::string, OpTime> times;  // by op; updated by its calls
};

struct Step {
  cpu::BoundKernel kernel;                     // empty for a collective
  std::int64_t twice_read;                     // bytes of operands given more than once: kernels count each occurrence
  std::int64_t end;                            // end of its addresses in the arena
  OpTime* time;                                // of its op
  std::optional<CollectiveKernel> collective;  // replaces `kernel`
  std::optional<TransferKernel> transfer;      // likewise
  cpu::KernelReport moves;                     // of the collective
  bool begins = false;                         // the collective ends later
  int after = -1;                              // index of the step of a collective that must have ended before
};

// Half a millisecond or more.
bool is_long(const Work& work) { return work.flops > 50'000'000 || work.read + work.written > 8 * kMiB; }

class CpuCall : public Call {
 public:
  std::vector<Step> steps;
  bool is_long = false;  // long enough to pin the calling thread to a core
  bool begins = false;   // some step begins a collective
  KernelObserver* observer = nullptr;
  std::vector<ObservedKernel> seen;  // per step, for the observer
};

// Visits each node of a graph and of its regions that has its own kernel.
template <typename Visit>
void for_each_kernel(const Graph& graph, const Visit& visit) {
  std::vector<const Graph*> stack{&graph};
  while (!stack.empty()) {
    const Graph& g = *stack.back();
    stack.pop_back();
    for (const GraphNode& node : g.nodes()) {
      if (node.op->view) continue;
      if (node.op->name == std::string_view("repeat")) {
        for (const Graph& region : node.regions) stack.push_back(&region);
      } else {
        visit(g, node);
      }
    }
  }
}

class CpuDevice : public HostDevice {
 public:
  CpuDevice(const CpuOptions& options, cpu::Isa isa, int threads)
      : kernels_(cpu::kernels_of(isa)),
        contractions_(kernels_, threads, options.exact),
        shared_{kernels_, contractions_, threads, cpu::best_int8_unit(isa)},
        isa_name_(cpu::name_of(isa)),
        count_(options.count),
        cores_(threads) {
    target_.name = fmt::format("this-machine({}, {} {})", cpu_numerics({isa, cpu::dnnl_isa()}), threads,
                               threads == 1 ? "thread" : "threads");
    target_.kind = "cpu";
    target_.memory_limit = options.memory_limit;
    target_.links = options.links;
    target_.dtypes = {DType::f32, DType::bf16, DType::i32, DType::i64, DType::boolean};
    target_.library_products = cpu::Contractions::library_products(options.exact);
    target_.fusion.chains = options.chains;
    target_.fusion.max_operands = 12;
    target_.fusion.max_steps = 24;  // so that operands fit in a chain's registers too
    target_.threads = threads;
  }

  Bytes workspace(const Graph& graph, const GraphNode& node) const override {
    if (is_collective(node)) return collective_workspace(collective_call(graph, node));
    const cpu::KernelEntry* entry = cpu::entry_of(node.op->name);
    const cpu::NodeInfo info{graph, node};
    if (entry == nullptr || entry->workspace == nullptr || !unknown_type(info).empty()) return Bytes(0);
    return Bytes(entry->workspace(info, shared_));
  }

  Result<std::unique_ptr<Executable>> compile(const Function& function) override {
    std::set<std::string> refusals;
    for_each_kernel(function.graph, [&](const Graph& graph, const GraphNode& node) {
      const std::string refusal = refusal_of({graph, node});
      if (!refusal.empty()) refusals.insert(fmt::format("{}: {}", node.op->name, refusal));
    });
    if (!refusals.empty()) {
      Error refused =
          error(ErrorKind::unsupported, "the cpu backend cannot run '{}': {}", function.name, *refusals.begin());
      refused.hint = "train.precision: f32 or bf16; the reference backend runs every type, slowly";
      for (auto more = std::next(refusals.begin()); more != refusals.end(); ++more)
        refused.others.push_back(error(ErrorKind::unsupported, "'{}': {}", function.name, *more));
      return refused;
    }
    for_each_kernel(function.graph, [&](const Graph&, const GraphNode& node) {
      ++used_[is_collective(node) || is_transfer(node) ? "ranks" : cpu::entry_of(node.op->name)->kernel][node.op->name];
    });
    return std::unique_ptr<Executable>(std::make_unique<CpuExecutable>(function));
  }

  Result<std::unique_ptr<Call>> bind(const Executable& executable, Memory& memory,
                                     const Addresses& addresses) override {
    auto list = std::make_unique<CpuCall>();
    list->observer = observer_;
    const auto& compiled = static_cast<const CpuExecutable&>(executable);
    list->is_long = is_long(compiled.function.work);
    for (const KernelCall& call : flatten(compiled.function, addresses)) {
      const cpu::NodeInfo info{*call.graph, *call.node};
      cpu::Places places;
      for (const std::int64_t offset : call.operands) places.operands.push_back(memory.host() + offset);
      for (const std::int64_t offset : call.results) places.results.push_back(memory.host() + offset);
      if (call.workspace >= 0) places.workspace = memory.host() + call.workspace;
      if (observer_ != nullptr) {
        list->seen.push_back({call.graph,
                              call.node,
                              call.layers,
                              {places.operands.begin(), places.operands.end()},
                              {places.results.begin(), places.results.end()}});
      }
      OpTime& time = compiled.times[call.node->op->name];
      time.op = call.node->op->name;
      if (is_transfer(*call.node)) {
        TransferKernel kernel = TRY(TransferKernel::make(communicator_, call, addresses.microbatch, memory.host()));
        list->steps.push_back({{}, 0, call.end(), &time, {}, std::move(kernel), {}, false, -1});
        continue;
      }
      if (is_collective(*call.node)) {
        CollectiveKernel kernel = TRY(CollectiveKernel::make(communicator_, call, memory.host()));
        Step step{{}, 0, call.end(), &time, std::move(kernel), {}, {}, false, -1};
        step.begins =
            call.begins && observer_ == nullptr && step.collective->sends();  // an observer sees complete results
        list->begins |= step.begins;
        step.moves.bytes_read = info.operand(0).bytes().count();
        step.moves.bytes_written = info.result(0).bytes().count();
        list->steps.push_back(std::move(step));
        continue;
      }
      try {
        list->steps.push_back({cpu::entry_of(call.node->op->name)->bind(info, places, shared_),
                               twice_read(info, places),
                               call.end(),
                               &time,
                               {},
                               {},
                               {},
                               false,
                               observer_ == nullptr ? call.after : -1});
      } catch (const Failure& failure) { return failure.error(); }
    }
    return std::unique_ptr<Call>(std::move(list));
  }

  DeviceEvent run(Call& call, WorkCounters& counters) override {
    auto& list = static_cast<CpuCall&>(call);
    const cpu::HeldToCores held(cores_, list.is_long);
    Status done = count_ ? run_counted(list, counters) : run_plain(list, counters);
    return done.ok() ? DeviceEvent() : DeviceEvent::failed(std::move(done).error());
  }

  std::vector<OpTime> op_times(const Executable& executable) const override {
    std::vector<OpTime> times;
    for (const auto& [op, time] : static_cast<const CpuExecutable&>(executable).times) times.push_back(time);
    return times;
  }

  std::vector<std::string> kernels_used() const override {
    std::vector<std::string> lines;
    for (const auto& [kernel, ops] : used_) {
      const bool matmul = ops.count("contract") != 0;
      std::string line = fmt::format("{:<15}{:<13}", kernel, matmul ? cpu::name_of(cpu::dnnl_isa()) : isa_name_);
      for (const auto& [op, count] : ops) line += fmt::format("{} ×{}  ", op, count);
      if (matmul) {
        for (const auto& [implementation, count] : contractions_.implementations())
          line += fmt::format(" {} ×{}", implementation, count);
      }
      lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
    }
    return lines;
  }

 private:
  static Result<cpu::KernelReport> run_step(const Step& step, WorkCounters& counters) {
    if (step.transfer) {
      TRY(step.transfer->post(counters));
      return step.moves;
    }
    if (!step.collective) return step.kernel();
    TRY(step.begins ? step.collective->start() : step.collective->run(counters));
    return step.moves;
  }

  Status run_plain(const CpuCall& list, WorkCounters& counters) {
    for (const Step& step : list.steps) {
      if (step.after >= 0) TRY(collective_of(list, step.after).finish(counters));
      TRY(run_step(step, counters));
      if (list.begins) TRY(communicator_->progress());
    }
    return list.begins ? communicator_->finish(nullptr, counters) : Status();
  }

  Status run_counted(const CpuCall& list, WorkCounters& counters) {
    auto began = std::chrono::steady_clock::now();
    const auto pass_time = [&](const Step& step) {
      const auto now = std::chrono::steady_clock::now();
      step.time->time += Seconds(std::chrono::duration<double>(now - began).count());
      began = now;
    };
    const Step* underway = nullptr;  // its op is charged with the time of progress and of waiting
    for (std::size_t i = 0; i < list.steps.size(); ++i) {
      const Step& step = list.steps[i];
      if (step.after >= 0) {
        TRY(collective_of(list, step.after).finish(counters));
        pass_time(list.steps[static_cast<std::size_t>(step.after)]);
      }
      if (list.observer != nullptr) list.observer->before(list.seen[i]);
      const cpu::KernelReport report = TRY(run_step(step, counters));
      pass_time(step);
      ++step.time->calls;
      add(report, step, counters);
      if (step.begins) underway = &step;
      if (underway != nullptr) {
        TRY(communicator_->progress());
        pass_time(*underway);
      }
      if (list.observer == nullptr) continue;
      TRY(list.observer->after(list.seen[i]));
      began = std::chrono::steady_clock::now();
    }
    if (underway == nullptr) return {};
    TRY(communicator_->finish(nullptr, counters));
    pass_time(*underway);
    return {};
  }

  static const CollectiveKernel& collective_of(const CpuCall& list, int step) {
    return *list.steps[static_cast<std::size_t>(step)].collective;
  }

  static void add(const cpu::KernelReport& report, const Step& step, WorkCounters& counters) {
    ++counters.calls;
    counters.flops += report.flops;
    counters.transcendentals += report.transcendentals;
    counters.skipped_flops += report.skipped_flops;
    counters.skipped_transcendentals += report.skipped_transcendentals;
    counters.bytes_read += report.bytes_read - step.twice_read;
    counters.bytes_written += report.bytes_written;
    counters.high_water = std::max(counters.high_water, step.end);
  }

  static std::string unknown_type(const cpu::NodeInfo& info) {
    const cpu::KernelEntry* entry = cpu::entry_of(info.node.op->name);
    const bool takes_i8 = entry != nullptr && entry->takes_i8;
    const auto check = [takes_i8](const Type& type) {
      if (takes_i8 && cpu::is_packed(type.dtype)) return std::string();
      return cpu::elem_of(type.dtype) ? std::string() : fmt::format("{} has no kernels here", name_of(type.dtype));
    };
    for (int i = 0; i < info.num_operands(); ++i) {
      if (std::string reason = check(info.operand(i)); !reason.empty()) return reason;
    }
    for (int i = 0; i < info.num_results(); ++i) {
      if (std::string reason = check(info.result(i)); !reason.empty()) return reason;
    }
    for (const Graph& region : info.node.regions) {
      for (int v = 0; v < region.num_values(); ++v) {
        if (std::string reason = check(region.type(ValueId{v})); !reason.empty()) return reason;
      }
    }
    return {};
  }

  std::string refusal_of(const cpu::NodeInfo& info) {
    if (is_collective(info.node) || is_transfer(info.node)) return unknown_type(info);
    const cpu::KernelEntry* entry = cpu::entry_of(info.node.op->name);
    if (entry == nullptr) return "no kernel";
    const std::string type = unknown_type(info);
    return type.empty() ? entry->refuses(info, shared_) : type;
  }

  static std::int64_t twice_read(const cpu::NodeInfo& info, const cpu::Places& places) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < places.operands.size(); ++i) {
      const auto first = std::find(places.operands.begin(), places.operands.end(), places.operands[i]);
      if (first != places.operands.begin() + static_cast<std::ptrdiff_t>(i))
        bytes += info.operand(static_cast<int>(i)).bytes().count();
    }
    return bytes;
  }

  const cpu::Kernels& kernels_;
  cpu::Contractions contractions_;
  mutable cpu::Shared shared_;
  const char* isa_name_;  // of our own kernels
  const bool count_;
  const cpu::TeamCores cores_;
  std::map<std::string, std::map<std::string, int>> used_;  // kernel → op → nodes
};

}  // namespace

Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options) {
  if (options.isa && !options.supports(*options.isa)) {
    return error(ErrorKind::unsupported, "this machine does not support {}", cpu::name_of(*options.isa));
  }
  if (!options.supports(cpu::Isa::avx2)) {
    return error(ErrorKind::unsupported, "the cpu backend needs AVX2 and FMA (x86-64-v3), which this machine lacks")
        .hinted("--backend reference runs on any machine, slowly");
  }
  const int threads = options.threads > 0 ? options.threads : cores_here();
  cpu::Isa best = cpu_isa().kernels;
  if (!options.supports(best)) best = cpu::Isa::avx2;
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(options, options.isa.value_or(best), threads));
}

void undo_openmp_binding() { cpu::use_all_places(); }

std::string cpu_library() { return cpu::dnnl_name(); }

Status load_cpu_library() { return cpu::load_dnnl(); }

}  // namespace systole

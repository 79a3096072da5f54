#include "execute/backends/reference/reference.h"

#include <algorithm>
#include <optional>

#include "describe/ir/op.h"
#include "execute/runtime/arena_memory.h"
#include "execute/runtime/collective_kernel.h"
#include "execute/runtime/flatten.h"

namespace systole {
namespace {

class ReferenceExecutable : public Executable {
 public:
  explicit ReferenceExecutable(const Function& f) : function(f) {}
  const Function& function;
};

// A node with its tensor views, made once.
struct Step {
  const GraphNode* node;
  std::vector<TensorView> operands, results;
  std::int64_t bytes_read, bytes_written;
  std::int64_t end;  // end of its addresses in the arena
  std::optional<CollectiveKernel> collective;
  std::optional<TransferKernel> transfer;
  bool begins = false;  // the collective ends later
  int after = -1;       // index of the step of a collective that must have ended before
};

class ReferenceCallList : public Call {
 public:
  std::vector<Step> steps;
  bool begins = false;  // some step begins a collective
  KernelObserver* observer = nullptr;
  std::vector<ObservedKernel> seen;  // per step, for the observer
};

// The bytes of distinct operands, by address, as KernelReport counts them.
std::int64_t distinct_bytes(const std::vector<TensorView>& views) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto same = [&](const TensorView& other) { return other.data == views[i].data; };
    if (std::find_if(views.begin(), views.end(), same) == views.begin() + static_cast<std::ptrdiff_t>(i))
      bytes += views[i].type.bytes().count();
  }
  return bytes;
}

class ReferenceDevice : public HostDevice {
 public:
  ReferenceDevice(bool chains, Bytes memory_limit) {
    target_.name = "reference";
    target_.kind = "reference";
    target_.memory_limit = memory_limit;
    target_.fusion.chains = chains;
    for (int d = 0; d < kNumDTypes; ++d) target_.dtypes.push_back(static_cast<DType>(d));
  }

  Bytes workspace(const Graph& graph, const GraphNode& node) const override {
    return is_collective(node) ? collective_workspace(collective_call(graph, node)) : Bytes(0);
  }

  Result<std::unique_ptr<Executable>> compile(const Function& function) override {
    return std::unique_ptr<Executable>(std::make_unique<ReferenceExecutable>(function));
  }

  Result<std::unique_ptr<Call>> bind(const Executable& executable, Memory& memory,
                                     const Addresses& addresses) override {
    auto list = std::make_unique<ReferenceCallList>();
    list->observer = observer_;
    for (const KernelCall& call : flatten(static_cast<const ReferenceExecutable&>(executable).function, addresses)) {
      Step step{call.node, {}, {}, 0, 0, call.end(), {}, {}, false, observer_ == nullptr ? call.after : -1};
      const auto view = [&](ValueId id, std::int64_t offset) {
        return TensorView{call.graph->type(id), memory.host() + offset};
      };
      for (std::size_t i = 0; i < call.operands.size(); ++i)
        step.operands.push_back(view(call.node->operands[i], call.operands[i]));
      for (std::size_t i = 0; i < call.results.size(); ++i)
        step.results.push_back(view(call.node->results[i], call.results[i]));
      if (observer_ != nullptr) {
        ObservedKernel seen{call.graph, call.node, call.layers, {}, {}};
        for (const TensorView& each : step.operands) seen.operands.push_back(each.data);
        for (const TensorView& each : step.results) seen.results.push_back(each.data);
        list->seen.push_back(std::move(seen));
      }
      if (is_transfer(*call.node)) {
        step.transfer = TRY(TransferKernel::make(communicator_, call, addresses.microbatch, memory.host()));
        list->steps.push_back(std::move(step));
        continue;
      }
      step.bytes_read = distinct_bytes(step.operands);
      step.bytes_written = distinct_bytes(step.results);
      if (is_collective(*call.node)) {
        step.collective = TRY(CollectiveKernel::make(communicator_, call, memory.host()));
        step.begins =
            call.begins && observer_ == nullptr && step.collective->sends();  // an observer sees complete results
        list->begins |= step.begins;
      }
      list->steps.push_back(std::move(step));
    }
    return std::unique_ptr<Call>(std::move(list));
  }

  DeviceEvent run(Call& call, WorkCounters& counters) override {
    Status done = play(static_cast<ReferenceCallList&>(call), counters);
    return done.ok() ? DeviceEvent() : DeviceEvent::failed(std::move(done).error());
  }

  std::vector<std::string> kernels_used() const override { return {"every op: reference"}; }

 private:
  Status play(const ReferenceCallList& list, WorkCounters& counters) {
    for (std::size_t i = 0; i < list.steps.size(); ++i) {
      const Step& step = list.steps[i];
      if (step.after >= 0) TRY(list.steps[static_cast<std::size_t>(step.after)].collective->finish(counters));
      if (list.observer != nullptr) list.observer->before(list.seen[i]);
      const Tally before = tally();
      if (step.collective) {
        TRY(step.begins ? step.collective->start() : step.collective->run(counters));
      } else if (step.transfer) {
        TRY(step.transfer->post(counters));
      } else {
        step.node->op->reference(ReferenceCall{step.node->attrs, step.operands, step.results, step.node->regions});
      }
      ++counters.calls;
      counters.flops += tally().flops - before.flops;
      counters.transcendentals += tally().transcendentals - before.transcendentals;
      counters.skipped_flops += tally().skipped_flops - before.skipped_flops;
      counters.skipped_transcendentals += tally().skipped_transcendentals - before.skipped_transcendentals;
      counters.bytes_read += step.bytes_read - (tally().untouched_bytes - before.untouched_bytes);
      counters.bytes_written += step.bytes_written;
      counters.high_water = std::max(counters.high_water, step.end);
      if (list.begins) TRY(communicator_->progress());
      if (list.observer != nullptr) TRY(list.observer->after(list.seen[i]));
    }
    return list.begins ? communicator_->finish(nullptr, counters) : Status();
  }
};

}  // namespace

std::unique_ptr<Device> make_reference_device(bool chains, Bytes memory_limit) {
  return std::make_unique<ReferenceDevice>(chains, memory_limit);
}

}  // namespace systole

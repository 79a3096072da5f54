#include "predict/serving/step_times.h"

#include <functional>

namespace systole {
namespace {

ServingTimes times_of(const EngineOptions& options, const std::function<Seconds(const std::string&)>& time_of) {
  ServingTimes times;
  for (const std::int64_t bucket : options.buckets) times.prefill.emplace_back(bucket, time_of(prefill_name(bucket)));
  for (const std::int64_t batch : options.batches) times.decode.emplace_back(batch, time_of(decode_name(batch)));
  return times;
}

}  // namespace

ServedTimes times_on_machine(const Program& program, const EngineOptions& options, const MachineSpeed& speed) {
  const Estimate estimated = estimate(program, speed);
  if (estimated.unknown) return {{}, estimated.unknown};
  return {times_of(options, [&](const std::string& name) { return estimated.schedule_named(name).time; }), {}};
}

ServedTimes times_on_chip(const Program& program, const EngineOptions& options, const Accelerator& chip,
                          const KernelChoice& choice, const StackProfile& asked, const Cluster* cluster) {
  StackProfile stack = asked;
  stack.whole_step = true;
  KernelChoice kernels = choice;
  kernels.narrow_products = true;
  StepParts step;
  step.kernels = kernels;
  const auto time_of = [&](const std::string& name) {
    FunctionParts parts;
    for (const StretchRecord& stretch : function_record(program.function_named(name).graph)) {
      WorkParts once = computed(stretch, chip, kernels);
      add_moved(stretch, chip, kernels, once);
      for (const MessageRecord& message : stretch.messages) {
        CHECK(cluster != nullptr, "'{}' sends, and its links are unknown", name);
        const MessageGroup group{message.kind, CarriedKind::tensor, static_cast<double>(message.bytes), 1};
        add_messages(group, links_of(*cluster, program.mesh, message.axes), *cluster, once);
      }
      parts.push_back({once, static_cast<double>(stretch.times)});
    }
    return Seconds(work_time(parts, step, stack).seconds);
  };
  return {times_of(options, time_of), {}};
}

ServingMemory serving_memory(const Program& program, Bytes outside, Bytes limit) {
  const MemoryByOwner owners = memory_by_owner(program);
  ServingMemory memory;
  memory.parameters = owners[Residence::parameter];
  memory.cache = owners[Residence::cache];
  memory.rest = program.arena - memory.parameters - memory.cache;
  memory.outside = outside;
  memory.limit = limit;
  return memory;
}

}  // namespace systole

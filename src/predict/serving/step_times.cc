#include "predict/serving/step_times.h"

#include <functional>

#include "describe/ir/rewrite.h"
#include "predict/perf/op_time.h"

namespace systole {
namespace {

ServingTimes times_of(const EngineOptions& options, const std::function<Seconds(const std::string&)>& time_of) {
  ServingTimes times;
  for (const std::int64_t bucket : options.buckets) times.prefill.emplace_back(bucket, time_of(prefill_name(bucket)));
  for (const std::int64_t batch : options.batches) times.decode.emplace_back(batch, time_of(decode_name(batch)));
  return times;
}

// Of attention over pages in a function.
Seconds paged_time(const Program& program, const std::string& name, const MachineSpeed& speed) {
  Seconds time;
  for (std::size_t f = 0; f < program.functions.size(); ++f) {
    if (program.functions[f].name != name) continue;
    each_kernel(program.functions[f].graph, speed, touched_between(program, static_cast<int>(f)),
                [&](const GraphNode& node, Seconds one, double runs) {
                  if (is(node, "paged_attention")) time += (one - speed.call) * runs;
                });
  }
  return time;
}

// Logits of a token.
std::int64_t vocabulary_of(const Program& program, const EngineOptions& options) {
  const std::int64_t rows = options.batches.back();
  const int logits = program.value_named(decode_name(rows) + "/logits");
  return program.values[static_cast<std::size_t>(logits)].type.num_elements() / rows;
}

}  // namespace

ServedTimes times_on_machine(const Program& program, const EngineOptions& options, const MachineSpeed& speed) {
  MachineSpeed serving = speed;
  serving.serves = true;
  const Estimate estimated = estimate(program, serving);
  if (estimated.unknown) return {{}, estimated.unknown};
  // Kernels of the cpu compute the positions that a token sees, not all that its table has room for.
  const auto paged = [&](const std::string& name) { return paged_time(program, name, serving); };
  ServingTimes times =
      times_of(options, [&](const std::string& name) { return estimated.schedule_named(name).time - paged(name); });
  const auto positions = [&](std::int64_t queries) { return static_cast<double>(queries * options.cache); };
  times.prefill_seen = paged(prefill_name(options.buckets.back())) * (1 / positions(options.buckets.back()));
  times.decode_seen = paged(decode_name(options.batches.back())) * (1 / positions(options.batches.back()));
  if (speed.draw > FlopRate()) times.draw = Flops(vocabulary_of(program, options)) / speed.draw;
  return {std::move(times), {}};
}

ServedTimes times_on_chip(const Program& program, const EngineOptions& options, const Accelerator& chip,
                          const KernelChoice& choice, const StackProfile& asked) {
  StackProfile stack = asked;
  stack.whole_step = true;
  KernelChoice kernels = choice;
  kernels.narrow_products = true;
  kernels.half_copies = false;  // parameters are as they are stored
  StepParts step;
  step.kernels = kernels;
  const auto time_of = [&](const std::string& name) {
    FunctionParts parts;
    for (const StretchRecord& stretch : function_record(program.function_named(name).graph)) {
      WorkParts once = computed(stretch, chip, kernels);
      add_moved(stretch, chip, kernels, once);
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

#include "predict/prove/job_on_slice.h"

#include "ground/base/hash.h"
#include "predict/perf/compiled_time.h"
#include "predict/prove/compiler_comparison.h"
#include "predict/prove/compute_beside.h"

namespace systole::prove {
namespace {

// XLA fuses by itself and needs no memory offsets. The arena is still planned, for comparison with the compiler's.
Target target_of(const Slice& slice) {
  Target target;
  target.name = slice.name;
  target.kind = "xla";
  target.memory_limit = slice.memory;
  target.dtypes = {DType::f32, DType::bf16, DType::f16};
  return target;
}

Node peak_node(const CompiledPeak& peak) {
  Node terms = Node::map({});
  for (const PeakTerm& term : peak.terms) terms.set(name_of(term.owner), term.bytes.count());
  return Node::map({{"arguments_bytes", peak.arguments.count()},
                    {"temporaries_bytes", peak.temporaries.count()},
                    {"outputs_bytes", peak.outputs.count()},
                    {"needed_bytes", peak.needed().count()},
                    {"gaps_bytes", peak.gaps.count()},
                    {"temporaries", std::move(terms)}});
}

// A step of a Program whose steps are fused.
JobOnSlice lowered_step(const std::string& name, const Program& program, const StepRows& rows, const Slice& slice,
                        const std::optional<ScheduleSpeed>& speed) {
  JobOnSlice result;
  result.name = name;
  result.program = program;
  const Action& fused = program.find_schedule(rows.schedule)->actions.front();
  result.step = program.functions[static_cast<std::size_t>(fused.function)].name;
  result.length = rows.length;
  result.rows = rows.rows;
  result.mesh = program.mesh.trivial() ? "one device" : to_string(program.mesh);
  const Function& step = result.function();
  result.module = stablehlo::lower(result.program, step);
  const CompilerLayout layout = layout_of_compiler(slice.plugin, slice.chip);
  result.peak = compiled_peak(result.program, step, layout);
  if (speed) result.compute = compiled_time(compiled_kernels(step, layout), *speed);
  return result;
}

}  // namespace

Result<std::vector<JobOnSlice>> lowered_on(const Job& job, const Slice& slice, const Catalog& catalog) {
  try {
    const Program fused = fused_step(*job.program);
    const std::optional<ScheduleSpeed> speed = TRY(schedule_speed_of(*TRY(catalog.find(slice.chip))));
    const std::vector<StepRows> one{{.schedule = "train"}};
    std::vector<JobOnSlice> steps;
    for (const StepRows& rows : job.shapes.empty() ? one : job.shapes)
      steps.push_back(lowered_step(job.workload.name, fused, rows, slice, speed));
    return steps;
  } catch (const Failure& failure) { return failure.error(); }
}

Result<Job> job_for(const Workload& workload, const Slice& slice, std::span<const std::int64_t> lengths) {
  const Target target = target_of(slice);
  TRY(check_precision(workload.train.precision, target));
  const auto no_workspace = [](const Graph&, const GraphNode&) { return Bytes(); };
  return make_job(workload, strategy_of(workload), target, no_workspace, 0, lengths);
}

Result<JobOnSlice> job_on(const Workload& workload, const Slice& slice, const Catalog& catalog,
                          std::span<const std::int64_t> lengths) {
  const Job job = TRY(job_for(workload, slice, lengths));
  return std::move(TRY(lowered_on(job, slice, catalog)).back());
}

Node beside_node(const JobOnSlice& job, const Proof& proof) {
  const Function& step = job.function();
  const CompilerComparison both = beside(job.program, step, job.module, proof);
  Node collectives = Node::sequence();
  for (const CollectivesBeside& kind : both.collectives) {
    collectives.push(Node::map({{"kind", kind.kind},
                                {"planned", kind.ours},
                                {"compiled", kind.theirs},
                                {"planned_bytes", kind.our_bytes.count()},
                                {"compiled_bytes", kind.their_bytes.count()}}));
  }
  return Node::map({{"mesh", job.mesh},
                    {"hash", hash_of(job.program)},
                    {"module", to_hex(hash128(job.module.text))},
                    {"arguments_bytes", both.ours.arguments.count()},
                    {"outputs_bytes", both.ours.outputs.count()},
                    {"aliased_bytes", both.ours.aliased.count()},
                    {"temporaries_bytes", both.ours.temporaries.count()},
                    {"arena_bytes", both.arena.count()},
                    {"predicted", peak_node(job.peak)},
                    {"compute", compute_node(job, &proof)},
                    {"flops", step.work.flops},
                    {"model_flops", step.work.model_flops},
                    {"collectives", std::move(collectives)},
                    {"unplanned", static_cast<std::int64_t>(both.unplanned.size())}});
}

Node predicted_node(const JobOnSlice& job, const Slice& slice) {
  return peak_node(job.peak)
      .set("slice", slice.name)
      .set("mesh", job.mesh)
      .set("memory_bytes", slice.memory.count())
      .set("fits", job.peak.needed() <= slice.memory)
      .set("compute", compute_node(job, nullptr));
}

}  // namespace systole::prove

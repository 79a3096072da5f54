#include "operate/cli/prove_job.h"

#include <cmath>

#include "describe/graph/partition/joined.h"
#include "execute/backends/null/null.h"
#include "execute/train/job.h"
#include "ground/base/counted.h"
#include "ground/base/hash.h"
#include "operate/cli/printer.h"
#include "operate/cli/prove_compute.h"
#include "operate/cli/session.h"
#include "predict/perf/compiled_time.h"
#include "predict/prove/beside.h"

namespace systole::cli {
namespace {

// XLA fuses by itself, and needs no places: the arena is planned all the same, to stand beside the compiler's.
Target target_of(const prove::Slice& slice) {
  Target target;
  target.name = slice.name;
  target.kind = "xla";
  target.memory_limit = slice.memory;
  target.dtypes = {DType::f32, DType::bf16, DType::f16};
  return target;
}

// "data=4,model=2" as what --set lays over a workload: "mesh={data: 4, model: 2}".
Result<std::string> set_of(const std::string& mesh) {
  std::string axes;
  for (std::size_t at = 0; at <= mesh.size();) {
    const std::size_t end = std::min(mesh.find(',', at), mesh.size()), equals = mesh.find('=', at);
    if (equals == at || equals >= end)
      return error(ErrorKind::invalid, "--mesh '{}': '{}' is no axis with a size", mesh, mesh.substr(at, end - at))
          .hinted("--mesh data=4,model=2");
    axes +=
        (axes.empty() ? "" : ", ") + mesh.substr(at, equals - at) + ": " + mesh.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return "mesh={" + axes + "}";
}

std::string signed_bytes(Bytes bytes) {
  return bytes < Bytes() ? "-" + to_string(Bytes(-bytes.count())) : to_string(bytes);
}

// "predicted temporaries  bytes" by owner.
std::string terms_text(const CompiledPeak& peak) {
  std::vector<std::vector<std::string>> rows;
  for (const PeakTerm& term : peak.terms) rows.push_back({name_of(term.owner), to_string(term.bytes)});
  if (peak.gaps.count() > 0) rows.push_back({"holes in the heap", to_string(peak.gaps)});
  if (peak.on_chip.count() > 0) rows.push_back({"beside them, in the chip's own memory", to_string(peak.on_chip)});
  return rows.empty() ? "none\n" : table({"predicted temporaries", "bytes>"}, rows);
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

Result<JobOnSlice> lowered(const std::string& name, const Program& program, const prove::Slice& slice,
                           const Catalog& catalog) {
  try {
    JobOnSlice result;
    result.name = name;
    result.program = joined(program);
    result.mesh = result.program.mesh.trivial() ? "one device" : to_string(result.program.mesh);
    const Function& step = result.program.function_named(kStepFunction);
    result.module = stablehlo::lower(result.program, step);
    const CompilerLayout layout = layout_of_compiler(slice.plugin, slice.chip);
    result.peak = compiled_peak(result.program, step, layout);
    if (const std::optional<ScheduleSpeed> speed = TRY(schedule_speed_of(*TRY(catalog.find(slice.chip)))))
      result.compute = compiled_time(compiled_kernels(result.program, step, layout), *speed);
    return result;
  } catch (const Failure& failure) { return failure.error(); }
}

}  // namespace

Result<JobOnSlice> job_on(const WorkloadArguments& arguments, const std::string& mesh, const prove::Slice& slice,
                          const Catalog& catalog) {
  WorkloadArguments asked = arguments;
  if (!mesh.empty()) asked.sets.push_back(TRY(set_of(mesh)));
  const LoadedWorkload loaded = TRY(load_workload(asked));
  std::int64_t devices = 1;
  for (const auto& [axis, size] : loaded.workload.mesh) devices *= size;
  if (devices > slice.devices)
    return error(ErrorKind::invalid, "its mesh has {}, and {} has {}", counted(devices, "device"), slice.name,
                 slice.devices)
        .at({arguments.path, 0, 0})
        .hinted("--mesh, or --on a larger slice");
  Result<Job> job = make_job(loaded.workload, *make_null_device(target_of(slice)));
  if (!job.ok()) return told_of_job(loaded.source, std::move(job).error());
  Result<JobOnSlice> result = lowered(loaded.workload.name, *job->program, slice, catalog);
  if (!result.ok() && result.error().where.file.empty()) {
    Error told = std::move(result).error();
    told.where.file = arguments.path;
    return told;
  }
  return result;
}

Result<JobOnSlice> job_on(const Workload& workload, const prove::Slice& slice, const Catalog& catalog) {
  const Job job = TRY(make_job(workload, *make_null_device(target_of(slice))));
  return lowered(workload.name, *job.program, slice, catalog);
}

std::string beside_text(const JobOnSlice& job, const prove::Proof& proof, int width) {
  const Function& step = job.program.function_named(kStepFunction);
  const prove::Beside both = prove::beside(job.program, step, job.module, proof);
  std::string text = fmt::format("\nthe Program on {}\n", job.mesh);
  if (proof.memory) {
    std::vector<std::vector<std::string>> rows;
    const auto row = [&](const char* name, Bytes ours, Bytes predicted, Bytes theirs) {
      rows.push_back({name, to_string(ours), to_string(predicted), to_string(theirs), signed_bytes(theirs - ours)});
    };
    row("arguments", both.ours.arguments, job.peak.arguments, proof.memory->arguments);
    row("temporaries", both.ours.temporaries, job.peak.temporaries, proof.memory->temporaries);
    row("outputs that are not aliased", both.ours.outputs - both.ours.aliased, job.peak.outputs,
        proof.memory->outputs - proof.memory->aliased);
    row("needed", both.ours.needed(), job.peak.needed(), proof.memory->needed());
    text += table({"memory of a device", "planned>", "predicted>", "compiled>", "difference>"}, rows, width);
    const double off = job.peak.needed() / proof.memory->needed() - 1;
    text += fmt::format("predicted is {:.1f}% {} what is compiled\n", 100 * std::abs(off), off < 0 ? "below" : "above");
    text += terms_text(job.peak);
  }
  text += fmt::format("its arena, with what other schedules need: {}\n", to_string(both.arena));
  text += fmt::format("FLOPs of a device: {} planned in all, {} of them the model's; {:.4g} compiled in products\n",
                      with_commas(step.work.flops), with_commas(step.work.model_flops), proof.executed.product_flops);
  for (const std::string& note : job.module.notes) text += note + "\n";
  if (proof.whole) text += compute_text(job, &proof);
  if (both.collectives.empty()) return text;
  std::vector<std::vector<std::string>> rows;
  bool equal = true;
  for (const prove::CollectivesBeside& kind : both.collectives) {
    equal &= kind.our_bytes == kind.their_bytes;
    rows.push_back({kind.kind, with_commas(kind.ours), with_commas(kind.theirs), to_string(kind.our_bytes),
                    to_string(kind.their_bytes), signed_bytes(kind.their_bytes - kind.our_bytes)});
  }
  text += "\n" + table({"collectives", "planned>", "compiled>", "bytes planned>", "bytes compiled>", "difference>"},
                       rows, width);
  if (equal) return text + "the bytes that were planned\n";
  for (const prove::CompiledCollective& collective : both.unplanned)
    text += fmt::format("not planned: {} of {}, {}, for {}\n", collective.kind, to_string(collective.bytes),
                        counted(collective.executed, "time"), collective.source.empty() ? "-" : collective.source);
  return text;
}

Node beside_node(const JobOnSlice& job, const prove::Proof& proof) {
  const Function& step = job.program.function_named(kStepFunction);
  const prove::Beside both = prove::beside(job.program, step, job.module, proof);
  Node collectives = Node::sequence();
  for (const prove::CollectivesBeside& kind : both.collectives) {
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

std::string predicted_text(const JobOnSlice& job, const prove::Slice& slice) {
  const CompiledPeak& peak = job.peak;
  std::string text = fmt::format("{} on {}, on {}: predicted {}\n", job.name, slice.name, job.mesh,
                                 peak.needed() <= slice.memory ? "to fit" : "not to fit");
  text += "\n" + table({"memory of a device", "bytes>"}, {{"arguments", to_string(peak.arguments)},
                                                          {"temporaries", to_string(peak.temporaries)},
                                                          {"outputs that are not aliased", to_string(peak.outputs)},
                                                          {"needed", to_string(peak.needed())}});
  text += fmt::format("{:.1f}% of the {} that a device has; a compiler gives a little less\n\n",
                      100 * (peak.needed() / slice.memory), to_string(slice.memory));
  return text + terms_text(peak) + compute_text(job, nullptr);
}

Node predicted_node(const JobOnSlice& job, const prove::Slice& slice) {
  return peak_node(job.peak)
      .set("slice", slice.name)
      .set("mesh", job.mesh)
      .set("memory_bytes", slice.memory.count())
      .set("fits", job.peak.needed() <= slice.memory)
      .set("compute", compute_node(job, nullptr));
}

}  // namespace systole::cli

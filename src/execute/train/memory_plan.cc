#include "execute/train/memory_plan.h"

#include <algorithm>
#include <set>

#include "describe/partition/pipeline.h"
#include "execute/runtime/flatten.h"

namespace systole {
namespace {

// Measured on Debian 12 (x86-64, glibc 2.36, oneDNN 2.6.3, gcc 12, release build), 2026-11-22: resident memory at the
// end of runs, without arena, dataset and data queue, on 1 to 24 layers, 1 and 4 microbatches, 1 to 64 threads,
// vocabularies of 2,048 and 16,384. Text reading: 2026-11-23 under Linux 6.18, after a run unloads the planner's code
// (ground/process/loaded_pages.h). The process: 2026-11-24, with pages that come back in pieces of 64 KiB: 18.72 to
// 19.05 MB resident in examples/linear.yaml, the program just linked, copied, or read back from disk; 2026-11-27, of a
// program that is 0.3 MB larger in memory, on an EPYC: 19.60 MB; 2026-11-28, of one that also serves, evaluates and has a
// registry, on a Xeon: 20.57 to 20.92 MB. Details: docs/concepts/memory.md.
constexpr Bytes kProcess = 18 * kMiB;           // executed code, libraries included, and heap
constexpr Bytes kOneDnn = 2 * kMiB;             // touched pages of its code
constexpr Bytes kText = 3 * kMiB + 256 * kKiB;  // the reader's thread, and code that reads and decodes tokens
constexpr Bytes kPerThread = 16 * kKiB;         // its stack
constexpr Bytes kPerKernel = Bytes(3328);       // a kernel of a function, with its graph node
constexpr Bytes kPerCall = Bytes(2048);         // a kernel bound to its addresses
// If all matmuls use our own kernel, whose calls are a few pointers, not oneDNN objects. Averages over all kernels of a
// run, measured as above.
constexpr Bytes kPerLightKernel = Bytes(1664), kPerLightCall = Bytes(1024);

struct Kernels {
  std::int64_t of_functions = 0;  // counts each function once
  std::int64_t bound = 0;         // counts once all actions with the same addresses
};

// Counts kernels as the executor binds them.
Kernels kernels_of(const Program& program) {
  Kernels kernels;
  std::vector<std::int64_t> sizes;
  for (const Function& function : program.functions) {
    const std::vector<SlotAddress> inputs(function.inputs.size()), outputs(function.outputs.size());
    sizes.push_back(static_cast<std::int64_t>(flatten(function, Addresses{inputs, outputs, 0}).size()));
    kernels.of_functions += sizes.back();
  }
  std::set<std::vector<int>> bound;  // function, microbatch and slots
  for (const Schedule& schedule : program.schedules) {
    for (const Action& action : schedule.actions) {
      const Function& function = program.functions[static_cast<std::size_t>(action.function)];
      std::vector<int> places{action.function, action.stream == Stream::network ? action.microbatch : 0};
      for (const Port& port : function.inputs) places.push_back(slot_of(program, port, action));
      for (const Port& port : function.outputs) places.push_back(slot_of(program, port, action));
      if (bound.insert(std::move(places)).second) kernels.bound += sizes[static_cast<std::size_t>(action.function)];
    }
  }
  return kernels;
}

bool has_product_of(const Graph& graph, const std::vector<DType>& dtypes) {
  for (const GraphNode& node : graph.nodes()) {
    if (node.op->name == std::string_view("contract") &&
        std::find(dtypes.begin(), dtypes.end(), graph.type(node.operands[0]).dtype) != dtypes.end())
      return true;
    for (const Graph& region : node.regions) {
      if (has_product_of(region, dtypes)) return true;
    }
  }
  return false;
}

bool needs_library(const Program& program) {
  return std::any_of(program.functions.begin(), program.functions.end(),
                     [&](const Function& f) { return has_product_of(f.graph, program.target.library_products); });
}

// Memory of the job after one edit, if it can be planned.
std::optional<Bytes> total_with(const Workload& workload, const OutsideArena& outside, const Device& device,
                                std::int64_t rank) {
  Result<Job> job = make_job(workload, device, rank);
  if (!job.ok()) return std::nullopt;
  return plan_memory(*job->program, outside).total();
}

// " on stage 2 of 4"; empty without stages.
std::string of_stage(const Workload& workload, std::int64_t rank) {
  const Result<Mesh> mesh = Mesh::of(workload.mesh);
  const auto pipe = mesh.ok() ? mesh->find(kPipelineAxis) : Result<std::size_t>(mesh.error());
  if (!pipe.ok() || mesh->axes()[*pipe].size == 1) return "";
  return fmt::format(" on stage {} of {}", mesh->coordinates(rank)[*pipe], mesh->axes()[*pipe].size);
}

struct Edit {
  std::string text;
  Workload workload;
};

std::vector<Edit> edits_of(const Workload& workload) {
  std::vector<Edit> edits;
  for (std::int64_t m = workload.train.microbatches * 2; m <= workload.train.batch && edits.size() < 4; m *= 2) {
    edits.push_back({fmt::format("train.microbatches: {}", m), workload});
    edits.back().workload.train.microbatches = m;
  }
  if (workload.checkpoint.asynchronous) {
    edits.push_back({"checkpoint.asynchronous: false", workload});
    edits.back().workload.checkpoint.asynchronous = false;
  }
  if (workload.train.recompute.kind == RecomputeSpec::Kind::none) {
    edits.push_back({"train.recompute: block", workload});
    edits.back().workload.train.recompute.kind = RecomputeSpec::Kind::block;
  }
  if (workload.train.precision.compute == DType::f32) {
    edits.push_back({"train.precision: bf16", workload});
    edits.back().workload.train.precision.compute = DType::bf16;
  }
  return edits;
}

}  // namespace

Bytes MemoryPlan::total() const {
  Bytes sum;
  for (const auto& [owner, bytes] : by_owner) sum += bytes;
  return sum;
}

Bytes planned_libraries(const Program& program, Bytes tokenizer) {
  const Kernels kernels = kernels_of(program);
  const bool light = program.target.kind == "cpu" && !needs_library(program);
  Bytes sum = kProcess + (light ? kPerLightKernel : kPerKernel) * kernels.of_functions +
              (light ? kPerLightCall : kPerCall) * kernels.bound;
  if (program.target.kind == "cpu") sum += (light ? Bytes() : kOneDnn) + kPerThread * program.target.threads;
  if (tokenizer > Bytes()) sum += kText + tokenizer;
  return sum;
}

namespace {

void largest_first(MemoryPlan& plan) {
  std::erase_if(plan.by_owner, [](const auto& entry) { return entry.second.count() == 0; });
  std::stable_sort(plan.by_owner.begin(), plan.by_owner.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

}  // namespace

MemoryPlan plan_memory(const Program& program, Bytes temporaries) {
  MemoryPlan plan;
  std::array<Bytes, kNumResidences> owners{};
  for (const ProgramValue& value : program.values)
    owners[static_cast<std::size_t>(value.residence)] += value.type.bytes() * value.slots;
  for (int r = 0; r < kNumResidences; ++r)
    plan.by_owner.emplace_back(name_of(static_cast<Residence>(r)), owners[static_cast<std::size_t>(r)]);
  plan.by_owner.emplace_back("inputs of the next step", owners[static_cast<std::size_t>(Residence::input)]);
  plan.by_owner.emplace_back("temporaries", temporaries);
  largest_first(plan);
  plan.arena = plan.total();
  return plan;
}

MemoryPlan plan_memory(const Program& program, const OutsideArena& outside) {
  MemoryPlan plan;
  plan.arena = program.arena;
  const MemoryByOwner owners = memory_by_owner(program);
  for (int r = 0; r < kNumResidences; ++r)
    plan.by_owner.emplace_back(name_of(static_cast<Residence>(r)), owners.bytes[static_cast<std::size_t>(r)]);
  plan.by_owner.emplace_back("gaps", owners.unused);
  for (const auto& [owner, bytes] :
       {std::pair("data queue", outside.data_queue), std::pair("dataset", outside.dataset),
        std::pair("checkpoint writer", outside.checkpoint_writer), std::pair("libraries", outside.libraries),
        std::pair("weights reader", outside.weights)}) {
    plan.by_owner.emplace_back(owner, bytes);
  }
  largest_first(plan);
  return plan;
}

Status check_fit(const Workload& workload, const MemoryPlan& plan, const OutsideArena& outside, Bytes limit,
                 const Device& device, std::int64_t rank, const MemoryBound& bound) {
  const Bytes total = plan.total();
  if (limit.count() == 0 || total <= limit) return {};
  std::string largest;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, plan.by_owner.size()); ++i) {
    largest +=
        fmt::format("{}{} {}", i > 0 ? ", " : "", plan.by_owner[i].first, with_commas(plan.by_owner[i].second.count()));
  }
  std::string fits, closest;
  for (const Edit& edit : edits_of(workload)) {
    const std::optional<Bytes> needed = total_with(edit.workload, outside, device, rank);
    if (!needed || *needed >= total) continue;
    if (*needed <= limit) {
      fits += fmt::format("{}{} (fits, {} free)", fits.empty() ? "" : "; ", edit.text, to_string(limit - *needed));
    } else {
      closest = fmt::format("{} still needs {}", edit.text, to_string(*needed));
    }
  }
  if (fits.empty())
    fits = fmt::format("{}{}B or more{}, or a smaller model{}",
                       bound.by_option ? "--memory " : "resources.memory: ", total.count() * bound.sharers,
                       bound.sharers > 1 ? fmt::format(" for {} ranks together", bound.sharers) : "",
                       closest.empty() ? "" : "; " + closest);
  return error(ErrorKind::does_not_fit,
               "does not fit{}: {}needs {} bytes, limit {} (short by {}){}; largest: {}; nothing was started",
               of_stage(workload, rank), bound.sharers > 1 ? "a rank " : "", with_commas(total.count()),
               with_commas(limit.count()), with_commas((total - limit).count()),
               bound.sharers > 1 ? fmt::format(", of {} that {} ranks share equally",
                                               with_commas(limit.count() * bound.sharers), bound.sharers)
                                 : "",
               largest)
      .hinted(fits);
}

}  // namespace systole

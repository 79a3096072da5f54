#include "execute/train/memory_plan.h"

#include <algorithm>

namespace systole {
namespace {

// The same job with one edit: what it would need, if it can be planned.
std::optional<Bytes> total_with(const Workload& workload, const OutsideArena& outside, const Device& device) {
  Result<Job> job = make_job(workload, device);
  if (!job.ok()) return std::nullopt;
  return plan_memory(*job->program, outside).total();
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

MemoryPlan plan_memory(const Program& program, const OutsideArena& outside) {
  MemoryPlan plan;
  plan.arena = program.arena;
  const MemoryByOwner owners = memory_by_owner(program);
  for (int r = 0; r < kNumResidences; ++r)
    plan.by_owner.emplace_back(name_of(static_cast<Residence>(r)), owners.bytes[static_cast<std::size_t>(r)]);
  plan.by_owner.emplace_back("gaps", owners.unused);
  for (const auto& [owner, bytes] :
       {std::pair("data queue", outside.data_queue), std::pair("dataset", outside.dataset),
        std::pair("checkpoint writer", outside.checkpoint_writer), std::pair("libraries", outside.libraries)}) {
    plan.by_owner.emplace_back(owner, bytes);
  }
  std::erase_if(plan.by_owner, [](const auto& entry) { return entry.second.count() == 0; });
  std::stable_sort(plan.by_owner.begin(), plan.by_owner.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return plan;
}

Status check_fit(const Job& job, const MemoryPlan& plan, const OutsideArena& outside, Bytes limit,
                 const Device& device) {
  const Bytes total = plan.total();
  if (limit.count() == 0 || total <= limit) return {};
  std::string largest;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, plan.by_owner.size()); ++i) {
    largest +=
        fmt::format("{}{} {}", i > 0 ? ", " : "", plan.by_owner[i].first, with_commas(plan.by_owner[i].second.count()));
  }
  std::string fits, closest;
  for (const Edit& edit : edits_of(job.workload)) {
    const std::optional<Bytes> needed = total_with(edit.workload, outside, device);
    if (!needed || *needed >= total) continue;
    if (*needed <= limit) {
      fits += fmt::format("{}{} (fits, {} free)", fits.empty() ? "" : "; ", edit.text, to_string(limit - *needed));
    } else {
      closest = fmt::format("{} still needs {}", edit.text, to_string(*needed));
    }
  }
  if (fits.empty())
    fits = fmt::format("resources.memory: {}B or more, or a smaller model{}", total.count(),
                       closest.empty() ? "" : "; " + closest);
  return error(ErrorKind::does_not_fit,
               "does not fit: needs {} bytes, limit {} (short by {}); largest: {}; nothing was started",
               with_commas(total.count()), with_commas(limit.count()), with_commas((total - limit).count()), largest)
      .hinted(fits);
}

}  // namespace systole

#include "operate/targets/job_targets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "describe/spec/target_needs.h"
#include "ground/base/nearest.h"
#include "operate/targets/list.h"

namespace systole {
namespace {

const JobTarget* find_job_target(std::string_view name) {
  const auto all = job_targets();
  const auto found = std::ranges::find_if(all, [&](const JobTarget* each) { return name == each->row().name; });
  return found == all.end() ? nullptr : *found;
}

bool names_it(const WorkloadSource& source, const JobTargetRow& row) {
  return std::ranges::any_of(row.keys, [&](const char* key) { return key != nullptr && has_key(source, key); });
}

}  // namespace

std::span<const JobTarget* const> job_targets() {
  static const JobTarget* const kAll[] = {&slurm_target(),  &kubernetes_target(), &gke_target(),
                                          &gcloud_target(), &ssh_target(),        &docker_target()};
  return kAll;
}

std::vector<const JobTargetRow*> targets_named(const Workload& workload, const WorkloadSource& source) {
  const bool machines = workload.kind == Workload::Kind::machines;
  std::vector<const JobTargetRow*> targets;
  for (const JobTargetRow& row : job_target_table())
    if (machines ? static_cast<bool>(row.machines) : names_it(source, row)) targets.push_back(&row);
  std::set<std::string_view> included;
  for (const JobTargetRow* row : targets)
    if (row->includes != nullptr) included.insert(row->includes);
  std::erase_if(targets, [&](const JobTargetRow* row) { return included.contains(row->name); });
  return targets;
}

std::vector<const JobTargetRow*> job_targets_meant(const Workload& workload, const WorkloadSource& source) {
  std::vector<const JobTargetRow*> targets = targets_named(workload, source);
  std::erase_if(targets, [&](const JobTargetRow* row) {
    if (workload.kind == Workload::Kind::serve) return !row->serves;
    return workload.kind != Workload::Kind::machines && !row->jobs;
  });
  return targets;
}

Result<const JobTargetRow*> job_target_row_named(std::string_view name) {
  if (const JobTargetRow* row = find_job_target_row(name)) return row;
  return error(ErrorKind::invalid, "'{}' is no target that files can be rendered for", name)
      .hinted(nearest_hint(std::string(name), job_target_names()));
}

Result<Rendered> render(const RenderRequest& ask) {
  const JobTarget* target = find_job_target(ask.target->name);
  CHECK(target != nullptr, "nothing renders for {}", ask.target->name);
  if (ask.workload.kind == Workload::Kind::machines && !target->row().machines)
    return key_error(ErrorKind::invalid, "workload", "machines: nothing runs on them that {} could start",
                     ask.target->name)
        .hinted(
            fmt::format("--on {} makes them; with command: in the place of workload: machines, a program runs there",
                        fmt::join(job_targets_that(&JobTargetRow::machines), " or ")));
  if (ask.workload.kind == Workload::Kind::serve && !target->row().serves)
    return option_lacks(target->row(), &JobTargetRow::serves, "workload: serve", "");
  return target->render(ask);
}

Result<std::unique_ptr<ClusterClient>> open_cluster(std::string_view target,
                                                    const ClusterClient::ClusterLocation& where) {
  if (const JobTarget* found = find_job_target(target)) return found->open(where);
  return not_submitted_to(target);
}

}  // namespace systole

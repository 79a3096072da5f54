#pragma once
// All targets: one list, in the order of their table (describe/spec/job_target_table.h), and calls that find them by
// name.

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "operate/targets/job_target.h"

namespace systole {

std::span<const JobTarget* const> job_targets();

// The targets that a workload names: that have some of its keys (JobTargetRow::keys) and take its kind. Of machines
// alone it names each target that makes them, by its kind. A target that another one includes is left to that one.
std::vector<const JobTargetRow*> targets_named(const Workload& workload, const WorkloadSource& source);
// Those of them that carry all of it out, against which `check` and `plan` hold it: of a workload that runs, the ones
// that start jobs.
std::vector<const JobTargetRow*> job_targets_meant(const Workload& workload, const WorkloadSource& source);

// Errors: invalid, with the nearest names.
Result<const JobTargetRow*> job_target_row_named(std::string_view name);

// JobTarget::render of ask.target. Errors: its own; invalid, the workload is of machines only and the target does not
// accept it.
Result<Rendered> render(const RenderRequest& ask);

// As JobTarget::open. Errors: invalid, with the nearest names, also for an unknown target.
Result<std::unique_ptr<ClusterClient>> open_cluster(std::string_view target,
                                                    const ClusterClient::ClusterLocation& where = {});

}  // namespace systole

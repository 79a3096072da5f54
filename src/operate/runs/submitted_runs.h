#pragma once
// Submitted runs, found by name for the commands that follow them.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "operate/cluster/submit.h"
#include "operate/run/run_messages.h"

namespace systole {

// The surroundings of a command that follows submitted runs.
struct FollowScene {
  std::string folder;  // folder of runs; holds their records
  Clock& clock;
  RunMessages messages;
};

// A run from the records, with a client of its cluster.
class ClusterRun {
 public:
  ClusterRun(Submissions submissions, Record its_record, std::unique_ptr<ClusterClient> its_cluster, std::string told,
             Clock& clock)
      : record(std::move(its_record)),
        cluster(std::move(its_cluster)),
        told_(std::move(told)),
        submissions_(std::move(submissions)),
        audit_(submissions_.path(), clock),
        clock_(clock) {}
  SubmissionContext context() { return {submissions_, audit_, clock_, told_}; }
  RunStatus query() { return systole::query(*cluster, record, told_).value(); }
  // Errors: as settle in run_status.h.
  Result<RunStatus> settle() const { return systole::settle(*cluster, record, told_); }
  // The run's folder (of one task of an array), if this machine sees it.
  std::string folder(const std::string& task = "") const;

  Record record;
  std::unique_ptr<ClusterClient> cluster;

 private:
  std::string told_;  // RunStatus::told of an earlier query, from the index
  Submissions submissions_;
  Audit audit_;
  Clock& clock_;
};

// As open_cluster with two arguments; warns if it may be a different cluster.
Result<std::unique_ptr<ClusterClient>> open_cluster(std::string_view target,
                                                    const ClusterClient::ClusterLocation& where,
                                                    const std::function<void(const Error&)>& warning);

// The run submitted under that name; null: none. Throws if its record cannot be read or its cluster cannot be opened.
std::unique_ptr<ClusterRun> cluster_run_if_any(const std::string& run, const FollowScene& scene);
// Throws not_found, with the nearest names, if there is none.
std::unique_ptr<ClusterRun> cluster_run(const std::string& run, const FollowScene& scene);

// Creates records in scene.folder for runs that others submitted to the cluster, and returns them. Throws if the
// cluster cannot be queried, or a record cannot be written.
std::vector<Record> adopt_runs(std::string_view target, const ClusterClient::ClusterLocation& where,
                               const FollowScene& scene);

// Verifies the hash chain of the audit log of that folder of runs. Throws not_found if nothing was ever submitted from
// it, and the first violation.
AuditCheck verify_audit_of(const std::string& folder);

// "running as slurm job 17 on n[0-3]", "queued as slurm job 17: Resources: ...".
std::string describe_status(const Record& record, const JobStatus& status);

}  // namespace systole

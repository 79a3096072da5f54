#include "operate/runs/submitted_runs.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "ground/base/counted.h"
#include "ground/base/nearest.h"
#include "operate/runs/submitted_rows.h"
#include "operate/targets/job_targets.h"

namespace systole {

std::string ClusterRun::folder(const std::string& task) const {
  const std::filesystem::path path = std::filesystem::path(record.from) / record.folder;
  return path.lexically_normal().string() + (task.empty() ? "" : "." + task);
}

Result<std::unique_ptr<ClusterClient>> open_cluster(std::string_view target,
                                                    const ClusterClient::ClusterLocation& where,
                                                    const std::function<void(const Error&)>& warning) {
  std::unique_ptr<ClusterClient> cluster = TRY(systole::open_cluster(target, where));
  if (const std::optional<Error> doubt = cluster->doubt()) warning(*doubt);
  return cluster;
}

std::unique_ptr<ClusterRun> cluster_run_if_any(const std::string& run, const FollowScene& scene) {
  std::optional<Submissions> submissions = Submissions::open_if_there(scene.folder).value();
  if (!submissions || run.empty() || run.find('/') != run.npos || run.starts_with('.')) return nullptr;
  std::optional<Record> record = submissions->find(run).value();
  if (!record) return nullptr;
  std::unique_ptr<ClusterClient> cluster = open_cluster(record->target, record->where, scene.messages.warning).value();
  std::string told = told_before(scene.folder, *record);
  return std::make_unique<ClusterRun>(std::move(*submissions), std::move(*record), std::move(cluster), std::move(told),
                                      scene.clock);
}

std::unique_ptr<ClusterRun> cluster_run(const std::string& run, const FollowScene& scene) {
  if (std::unique_ptr<ClusterRun> found = cluster_run_if_any(run, scene)) return found;
  std::vector<std::string> names;
  if (std::optional<Submissions> submissions = Submissions::open_if_there(scene.folder).value()) {
    names = submissions->names().value();
    std::erase_if(names, [&](const std::string& name) {  // a failed submission may leave a folder
      const Result<std::optional<Record>> record = submissions->find(name);
      return record.ok() && !*record;
    });
  }
  fail(error(ErrorKind::not_found, "no run '{}' was submitted from here", run)
           .coded(ErrorCode::no_such_run)
           .hinted(names.empty()
                       ? fmt::format("systole submit WORKLOAD --on TARGET; systole runs --on {} finds those of others",
                                     fmt::join(job_targets_that(&JobTargetRow::adopts), " or "))
                       : nearest_hint(run, names)));
}

std::vector<Record> adopt_runs(std::string_view target, const ClusterClient::ClusterLocation& where,
                               const FollowScene& scene) {
  const std::unique_ptr<ClusterClient> cluster = open_cluster(target, where, scene.messages.warning).value();
  Submissions submissions = Submissions::open(scene.folder).value();
  Audit audit(submissions.path(), scene.clock);
  return adopt(*cluster, {submissions, audit, scene.clock}).value();
}

AuditCheck verify_audit_of(const std::string& folder) {
  std::optional<Submissions> submissions = Submissions::open_if_there(folder).value();
  if (!submissions)
    fail(error(ErrorKind::not_found, "nothing was ever submitted from '{}'", folder)
             .hinted("systole submit WORKLOAD --on slurm begins the audit"));
  std::vector<std::string> known;
  for (const Record& record : submissions->list().value()) known.push_back(record.audit);
  return verify_audit(submissions->path(), known).value();
}

std::string describe_status(const Record& record, const JobStatus& status) {
  std::string text = name_of(status.state);
  if (!record.id.empty()) text += fmt::format(" as {} job {}", record.target, record.id);
  if (!status.nodes.empty() && !is_over(status.state)) text += " on " + status.nodes;
  if (status.restarts > 0) text += fmt::format(", begun again {}", counted(status.restarts, "time"));
  if (!status.reason.empty()) text += ": " + status.reason;
  return text;
}

}  // namespace systole

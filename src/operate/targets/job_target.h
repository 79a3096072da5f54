#pragma once
// A job target: a place where `--on NAME` runs a workload. One interface with one class per target, each in its own
// folder. The target table (describe/spec/job_target_table.h) has a row of abilities for each.

#include <memory>
#include <string_view>

#include "describe/spec/job_target_table.h"
#include "describe/spec/source.h"
#include "operate/cluster/cluster.h"
#include "operate/render/cluster_job.h"
#include "operate/render/render.h"

namespace systole {

class JobTarget {
 public:
  // REQUIRES: the table has `name`.
  explicit JobTarget(std::string_view name);
  virtual ~JobTarget() = default;
  JobTarget(const JobTarget&) = delete;
  JobTarget& operator=(const JobTarget&) = delete;

  const JobTargetRow& row() const { return row_; }
  // The files of a workload, and the commands to type. Pure. Errors: unsupported, an ability that the target lacks,
  // with a target that has it; invalid, a name or number that it does not accept. The first error has all others in
  // `others`.
  // Errors: unsupported: a batch, where the target runs none.
  virtual Result<Rendered> render(const RenderRequest& ask) const = 0;
  // Opens a client that starts, queries and stops runs, reads their output and reaches their machines. `where`:
  // identifies the cluster, as ClusterClient::where returns it; empty: the default one. Errors: invalid, the target has
  // no submission; those of connecting.
  virtual Result<std::unique_ptr<ClusterClient>> open(const ClusterClient::ClusterLocation& where) const;

 private:
  const JobTargetRow& row_;
};

// A target that starts jobs: it derives the ClusterJob, which does not depend on the target, and then writes its files.
class ClusterJobTarget : public JobTarget {
 public:
  using JobTarget::JobTarget;
  Result<Rendered> render(const RenderRequest& ask) const final;

 private:
  virtual JobDefaults defaults(const RenderRequest&) const { return {}; }
  // Fills in Rendered, except run, folder and usd_per_hour.
  virtual Result<Rendered> render_job(const RenderRequest& ask, const ClusterJob& job) const = 0;
};

// The error for a target without submission: invalid, with the nearest that has it.
Error not_submitted_to(std::string_view target);

// Whether the workload's file, or an overlay, has a key with this prefix.
bool has_key(const WorkloadSource& source, std::string_view prefix);

// A batch is several processes of one file and times of a calendar, which not every target has. Errors: unsupported.
Status check_batch(const RenderRequest& ask);

}  // namespace systole

// Target slurm: a batch script, submitted by Slurm's own programs.
#include "operate/targets/list.h"
#include "operate/targets/slurm/batch.h"
#include "operate/targets/slurm/slurm.h"

namespace systole {
namespace {

class SlurmTarget : public ClusterJobTarget {
 public:
  SlurmTarget() : ClusterJobTarget("slurm") {}
  Result<std::unique_ptr<ClusterClient>> open(const ClusterClient::ClusterLocation&) const override {
    return open_slurm();
  }

 private:
  JobDefaults defaults(const RenderRequest&) const override { return {.replicas = CountRange{1, 1}}; }
  Result<Rendered> render_job(const RenderRequest& ask, const ClusterJob& job) const override {
    return render_slurm(ask, job);
  }
};

}  // namespace

const JobTarget& slurm_target() {
  static const SlurmTarget target;
  return target;
}

}  // namespace systole

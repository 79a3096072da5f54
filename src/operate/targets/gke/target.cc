// Target gke: Kubernetes objects, and the cluster for them.
#include "operate/targets/gke/cluster.h"
#include "operate/targets/kubernetes/manifest.h"
#include "operate/targets/list.h"

namespace systole {
namespace {

class GkeTarget : public ClusterJobTarget {
 public:
  GkeTarget() : ClusterJobTarget("gke") {}

 private:
  JobDefaults defaults(const RenderRequest& ask) const override {
    JobDefaults all = kubernetes_defaults(ask.workload);
    all.listed_price = [&ask](const ClusterJob& job) { return gke_price(ask, job); };
    return all;
  }
  Result<Rendered> render_job(const RenderRequest& ask, const ClusterJob& job) const override {
    return render_gke(ask, job);
  }
};

}  // namespace

const JobTarget& gke_target() {
  static const GkeTarget target;
  return target;
}

}  // namespace systole

// Target kubernetes: objects on an existing cluster, created through its API server.
#include "operate/targets/kubernetes/kubernetes.h"
#include "operate/targets/kubernetes/manifest.h"
#include "operate/targets/list.h"

namespace systole {
namespace {

class KubernetesTarget : public ClusterJobTarget {
 public:
  KubernetesTarget() : ClusterJobTarget("kubernetes") {}
  Result<std::unique_ptr<ClusterClient>> open(const ClusterClient::ClusterLocation& where) const override {
    return open_kubernetes(where);
  }

 private:
  JobDefaults defaults(const RenderRequest& ask) const override { return kubernetes_defaults(ask.workload); }
  Result<Rendered> render_job(const RenderRequest& ask, const ClusterJob& job) const override {
    return render_kubernetes(ask, job);
  }
};

}  // namespace

const JobTarget& kubernetes_target() {
  static const KubernetesTarget target;
  return target;
}

}  // namespace systole

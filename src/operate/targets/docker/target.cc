// Target docker: an image from which a workload can be started elsewhere.
#include "operate/targets/docker/docker.h"
#include "operate/targets/list.h"

namespace systole {
namespace {

class DockerTarget : public JobTarget {
 public:
  DockerTarget() : JobTarget("docker") {}
  Result<Rendered> render(const RenderRequest& ask) const override {
    TRY(check_batch(ask));
    return render_docker(ask);
  }
};

}  // namespace

const JobTarget& docker_target() {
  static const DockerTarget target;
  return target;
}

}  // namespace systole

// Target gcloud: the command that creates machines; it starts nothing on them.
#include "operate/targets/gcloud/machines.h"
#include "operate/targets/list.h"

namespace systole {
namespace {

class GcloudTarget : public JobTarget {
 public:
  GcloudTarget() : JobTarget("gcloud") {}
  Result<Rendered> render(const RenderRequest& ask) const override {
    TRY(check_batch(ask));
    return render_gcloud(ask);
  }
};

}  // namespace

const JobTarget& gcloud_target() {
  static const GcloudTarget target;
  return target;
}

}  // namespace systole

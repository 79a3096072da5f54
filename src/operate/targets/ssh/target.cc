// Target ssh: plain machines, whose agents are started by OpenSSH.
#include <algorithm>

#include "operate/targets/list.h"
#include "operate/targets/ssh/hosts.h"
#include "operate/targets/ssh/ssh.h"

namespace systole {
namespace {

class SshTarget : public ClusterJobTarget {
 public:
  SshTarget() : ClusterJobTarget("ssh") {}
  Result<std::unique_ptr<ClusterClient>> open(const ClusterClient::ClusterLocation&) const override {
    return open_ssh();
  }

 private:
  // Without any host, render_ssh reports that they are missing.
  JobDefaults defaults(const RenderRequest& ask) const override {
    const Workload& w = ask.workload;
    const auto hosts = std::max(static_cast<std::int64_t>(w.ssh.hosts.size()), std::int64_t{1});
    if (w.kind == Workload::Kind::serve) return {.replicas = CountRange{hosts, hosts}};
    return {.nodes = hosts};
  }
  Result<Rendered> render_job(const RenderRequest& ask, const ClusterJob& job) const override {
    return render_ssh(ask, job);
  }
};

}  // namespace

const JobTarget& ssh_target() {
  static const SshTarget target;
  return target;
}

}  // namespace systole

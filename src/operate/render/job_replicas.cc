// The servers of a workload that serves, and the machines that hold them.
#include <algorithm>
#include <cmath>

#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "operate/render/cluster_job.h"

namespace systole {
namespace {

constexpr Seconds kDrain{30.0};     // `systole serve --grace` without a value
constexpr Seconds kSpotDrain{5.0};  // a spot node of GKE gives its pods 15 s in all

// A server computes on one device, and several servers share a machine.
Status check_one_device(const ClusterJob& job) {
  if (job.slice && job.slice->chips > 1)
    return key_error(ErrorKind::invalid, "resources.accelerators",
                     "{} has {} in one slice, and a server computes on one", job.on, counted(job.slice->chips, "chip"))
        .hinted(
            fmt::format("resources.accelerators: {}:1; serve.replicas says how many serve", job.slice->accelerator));
  if (job.nodes.most > 1 || job.slices > 1)
    return key_error(ErrorKind::invalid, "resources.accelerators", "{} is {}, and a workload that serves names one",
                     job.on, counted(job.nodes.most, "machine"))
        .hinted(fmt::format("resources.accelerators: {}:1; serve.replicas says how many serve",
                            job.slice ? job.slice->accelerator : job.machine->name));
  return {};
}

}  // namespace

std::int64_t canary_servers(const ServeSpec& serve, const CountRange& replicas) {
  if (serve.canary.from.empty()) return 0;
  const auto weight = static_cast<double>(serve.canary.weight);
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(replicas.least) * weight / (100 - weight)));
}

Status set_replicas(const RenderRequest& ask, ClusterJob& job, const std::optional<CountRange>& otherwise) {
  const std::optional<CountRange>& replicas = ask.workload.serve.replicas ? ask.workload.serve.replicas : otherwise;
  if (!replicas)
    return key_error(ErrorKind::invalid, "serve.replicas", "nothing says how many servers there are")
        .hinted("serve: { replicas: 2 }; or resources.accelerators, for which they are planned");
  TRY(check_one_device(job));
  job.replicas = *replicas;
  job.pods_per_node = std::max<std::int64_t>(1, job.devices_per_node());
  const auto machines = [&](std::int64_t pods) { return (pods + job.pods_per_node - 1) / job.pods_per_node; };
  const std::int64_t newer = canary_servers(ask.workload.serve, *job.replicas);
  job.nodes = {machines(job.replicas->least + newer), machines(job.replicas->most + newer + 1)};
  job.notice = kUntilUnlisted + (job.terms == Provisioning::spot ? kSpotDrain : kDrain);
  return {};
}

}  // namespace systole

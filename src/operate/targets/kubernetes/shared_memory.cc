// /dev/shm: other programs pass tensors between processes through it, and a container's default is 64 MiB. Systole's
// ranks do not use it, and load data by threads.
#include <algorithm>

#include "operate/targets/kubernetes/pod.h"

namespace systole {

void add_shared_memory(const KubernetesJob& k, PodParts& parts) {
  if (k.workload().command.empty() || k.job.devices_per_node() == 0 || parts.memory <= Bytes{}) return;
  const Bytes most = std::min(Bytes(parts.memory.count() / 8), 64 * kGiB);  // counts as memory of the pod
  parts.mount("dshm", "/dev/shm", false,
              Node::map({{"emptyDir", Node::map({{"medium", "Memory"}, {"sizeLimit", quantity(most)}})}}));
}

}  // namespace systole

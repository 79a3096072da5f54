// /dev/shm: programs of others hand tensors from process to process through it, and a container's has 64 MiB. Ranks of
// Systole share memory without it, and load data by threads.
#include <algorithm>

#include "operate/render/kubernetes/pod.h"

namespace systole {

void add_shared_memory(const KubernetesJob& k, PodParts& parts) {
  if (k.workload().command.empty() || k.job.devices_per_node() == 0 || parts.memory <= Bytes{}) return;
  const Bytes most = std::min(Bytes(parts.memory.count() / 8), 64 * kGiB);  // it counts as memory of the pod
  parts.mount("dshm", "/dev/shm", false,
              Node::map({{"emptyDir", Node::map({{"medium", "Memory"}, {"sizeLimit", quantity(most)}})}}));
}

}  // namespace systole

// /dev/shm: other programs pass tensors between processes through it, and a container's default is 64 MiB. Systole's
// ranks load data by threads, and have objects of data.cache.memory there.
#include <algorithm>

#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

constexpr Bytes kLeast = 64 * kMiB;

// The batches that the loaders of all ranks of a node have ready, and one of each rank in use. 0: not said.
Bytes loaded_batches(const KubernetesJob& k) {
  const LoaderSpec& loader = k.workload().resources.loader;
  if (!loader.workers || !loader.batch || !loader.sample) return {};
  const std::int64_t batches = k.job.ranks_per_node * (*loader.workers * loader.prefetch + 1);
  const double bytes =
      static_cast<double>(batches) * static_cast<double>(*loader.batch) * static_cast<double>(loader.sample->count());
  if (bytes > 0x1p60) return Bytes(std::int64_t{1} << 60);
  return Bytes(std::max(kLeast.count(),
                        (static_cast<std::int64_t>(bytes) + kLeast.count() - 1) / kLeast.count() * kLeast.count()));
}

void mount(Bytes most, PodParts& parts) {
  parts.mount("dshm", "/dev/shm", false,
              Node::map({{"emptyDir", Node::map({{"medium", "Memory"}, {"sizeLimit", quantity(most)}})}}));
}

// The memory tier of the cache, and what a container has anyway.
void add_cached_objects(Bytes memory, PodParts& parts) {
  if (memory >= parts.memory)
    parts.wrong.push_back(key_error(ErrorKind::does_not_fit, "data.cache.memory",
                                    "{} of /dev/shm, and the pod has {} of memory for everything", to_string(memory),
                                    to_string(parts.memory))
                              .hinted("a smaller data.cache.memory, or a larger resources.memory"));
  const std::int64_t pieces = (memory.count() + kLeast.count() - 1) / kLeast.count();
  mount(Bytes((pieces + 1) * kLeast.count()), parts);
}

}  // namespace

void add_shared_memory(const KubernetesJob& k, PodParts& parts) {
  if (parts.memory <= Bytes{}) return;
  if (k.workload().command.empty()) {
    if (const std::optional<Bytes>& memory = k.workload().data.cache_memory) add_cached_objects(*memory, parts);
    return;
  }
  const LoaderSpec& loader = k.workload().resources.loader;
  const Bytes batches = loaded_batches(k);
  if (batches == Bytes{} && k.job.devices_per_node() == 0) return;
  if (batches == Bytes{} && loader.workers)
    parts.warnings.push_back(fmt::format(
        "resources.loader: {} unknown, so /dev/shm is an eighth of the memory; resources.loader.{} sizes it by the "
        "batches that {} workers of each rank have ready",
        loader.batch ? "the bytes of a sample are" : "the samples of a batch are",
        loader.batch ? "sample: 588KiB" : "batch_size: 64", *loader.workers));
  // It counts as memory of the pod.
  const Bytes most = batches > Bytes{} ? batches : std::min(Bytes(parts.memory.count() / 8), 64 * kGiB);
  if (most >= parts.memory)
    parts.wrong.push_back(key_error(ErrorKind::does_not_fit, "resources.loader",
                                    "its batches take {} of /dev/shm, and the pod has {} of memory for everything",
                                    to_string(most), to_string(parts.memory))
                              .hinted("fewer workers, prefetch: 1, or a larger resources.memory"));
  mount(most, parts);
}

}  // namespace systole

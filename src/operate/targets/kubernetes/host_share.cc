// Processors and memory of a pod: from the workload, or its part of what is usable of a catalog machine.
#include <cmath>

#include "ground/base/number_from.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

struct Step {
  double amount, share;  // reserved share of the next `amount`
};

double taken(double of, std::initializer_list<Step> steps, double beyond) {
  double sum = 0;
  for (const auto& [amount, share] : steps) {
    sum += std::min(of, amount) * share;
    of = std::max(0.0, of - amount);
  }
  return sum + of * beyond;
}

// The share of a machine that a pod can use.
struct HostShare {
  std::int64_t cpus = 0;
  Bytes memory{};
};

// Nothing, 0 of each, if the catalog has no single number of processors and of memory. `pods`: that share the machine.
HostShare host_share(const MachineType& machine, std::int64_t pods_per_node) {
  const auto pods = static_cast<double>(pods_per_node);
  const auto one = [](const std::optional<NumberRange>& range) {
    return range && range->least == range->most ? range->least : 0.0;
  };
  const double cpus = one(machine.vcpus), memory = one(machine.memory_gib);
  if (cpus <= 0 || memory <= 0) return {};
  // GKE's reservation on a node (docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes, recalled in
  // 2026-11): of cores 6 % of the first, 1 % of the second, 0.5 % of the next two, 0.25 % of the others; of memory 25 %
  // of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112, 2 % of the rest, and 100 MiB.
  const double cpu_left = cpus - taken(cpus, {{1, 0.06}, {1, 0.01}, {2, 0.005}}, 0.0025);
  const double guest = memory * 0.98;  // the kernel uses the rest
  const double memory_left = guest - taken(guest, {{4, 0.25}, {4, 0.2}, {8, 0.1}, {112, 0.06}}, 0.02) - 0.1;
  // One processor and 2 GiB for the cluster's own pods on every node.
  return HostShare{static_cast<std::int64_t>(std::floor((cpu_left - 1) / pods)),
                   kGiB * static_cast<std::int64_t>(std::floor((memory_left - 2) / pods))};
}

// The plan, where it is for machines whose processors compute: its memory is theirs. Null otherwise.
const Plan* host_plan(const KubernetesJob& k) {
  return k.ask.plan != nullptr && !k.ask.plan->cost ? k.ask.plan : nullptr;
}

// Threads of each rank that compute; 0: nobody says.
std::int64_t planned_threads(const KubernetesJob& k) {
  if (k.workload().resources.threads) return *k.workload().resources.threads;
  const Plan* plan = host_plan(k);
  if (plan == nullptr) return 0;
  const auto threads = plan->target.facts.find("threads");
  return threads == plan->target.facts.end() ? 0 : number_from(threads->second).value_or(0);
}

// Threads of each rank that read rows: as the workload has it, else as the plan has sized it.
std::int64_t planned_readers(const KubernetesJob& k) {
  if (k.workload().data.readers) return *k.workload().data.readers;
  return k.ask.plan != nullptr && k.ask.plan->feed ? k.ask.plan->feed->readers : 0;
}

// Batches of rows that each rank holds: the inputs and labels of each token, of 4 bytes.
Bytes queue_bytes(const KubernetesJob& k) {
  const Workload& w = k.workload();
  if (!w.has_model() || w.data.kind != DataSpec::Kind::text) return {};
  const std::optional<PlannedFeed> feed = k.ask.plan == nullptr ? std::nullopt : k.ask.plan->feed;
  const std::int64_t batches = w.data.queue ? *w.data.queue : feed ? feed->queue : 0;
  const double bytes = 8.0 * static_cast<double>(batches) * static_cast<double>(w.train.batch) *
                       static_cast<double>(w.model.context() + w.model.target_context());
  return Bytes(bytes < 0x1p50 ? static_cast<std::int64_t>(bytes) : std::int64_t{1} << 50);  // more than any pod has
}

// What the plan has counted for each rank, the queue of rows included, and the objects in shared memory, in whole pieces
// of 256 MiB, and one for the agent.
Bytes planned_memory(const KubernetesJob& k) {
  const Plan* plan = host_plan(k);
  if (plan == nullptr) return {};
  constexpr std::int64_t kPiece = std::int64_t{256} << 20;
  const Bytes shared = k.workload().data.cache_memory.value_or(Bytes());
  const std::int64_t bytes = plan->memory.total().count() * k.job.ranks_per_node + shared.count();
  return Bytes(((bytes + kPiece - 1) / kPiece + 1) * kPiece);
}

}  // namespace

void add_host_share(const KubernetesJob& k, PodParts& parts) {
  const ResourcesSpec& resources = k.workload().resources;
  const ClusterJob& job = k.job;
  const HostShare share = job.machine == nullptr ? HostShare{} : host_share(*job.machine, job.pods_per_node);
  const bool known = share.cpus > 0;
  const auto note = [&](Error e) { parts.wrong.push_back(std::move(e)); };
  const std::int64_t threads = resources.threads || !known ? planned_threads(k) : 0;
  std::int64_t cpus = threads > 0 ? threads * job.ranks_per_node : share.cpus;
  if (threads > 0) {  // readers read while the others compute
    const std::int64_t with_readers = cpus + planned_readers(k) * job.ranks_per_node;
    cpus = known ? std::max(cpus, std::min(with_readers, share.cpus)) : with_readers;
  }
  if (cpus < 1)
    note(key_error(ErrorKind::invalid, "resources.threads", "a pod says how many processors it needs")
             .hinted("resources: { threads: 8 }: of each rank; or --plan, one made for such a machine"));
  if (known && cpus > share.cpus)
    note(key_error(ErrorKind::does_not_fit, "resources.threads", "{} for each of {} rank{}; {} leaves {} to a pod",
                   resources.threads.value_or(0), job.ranks_per_node, job.ranks_per_node == 1 ? "" : "s",
                   job.machine->name, share.cpus)
             .hinted(fmt::format("resources.threads: {}", std::max<std::int64_t>(1, share.cpus / job.ranks_per_node))));
  parts.memory = resources.memory ? *resources.memory : known ? share.memory : planned_memory(k);
  if (parts.memory <= Bytes{})
    note(key_error(ErrorKind::invalid, "resources.memory", "a pod says how much memory it needs")
             .hinted("resources: { memory: 16GiB }: of all ranks of a node; or --plan, one made for such a machine"));
  if (const Bytes queue = queue_bytes(k) * job.ranks_per_node; parts.memory > Bytes{} && queue >= parts.memory)
    note(key_error(ErrorKind::does_not_fit, "data.queue",
                   "the batches in it take {}, and the pod has {} for everything", to_string(queue),
                   to_string(parts.memory))
             .hinted("data.queue: 3; or a larger resources.memory"));
  if (known && parts.memory > share.memory)
    note(key_error(ErrorKind::does_not_fit, "resources.memory", "{}; {} leaves {} to a pod", to_string(parts.memory),
                   job.machine->name, to_string(share.memory))
             .hinted(fmt::format("resources.memory: {}GiB", share.memory.count() / kGiB.count())));
  const std::string memory = quantity(parts.memory);
  // Before devices, as is customary.
  parts.requests = merged(Node::map({{"cpu", std::to_string(cpus)}, {"memory", memory}}), parts.requests);
  parts.limits = merged(Node::map({{"memory", memory}}), parts.limits);
}

}  // namespace systole

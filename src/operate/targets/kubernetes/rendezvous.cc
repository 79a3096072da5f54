// For ranks that no Systole agent starts: tells torchrun or the program the address of the first node and its own
// number. Kubeflow's operators do this for their own kinds.
#include "operate/render/quote.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

using Kind = KubernetesSpec::Kind;
using Launcher = KubernetesSpec::Launcher;

constexpr int kTorchPort = 29500;
// Port of JAX's coordinator. libtpu itself listens on 8471.
int jax_port(const ClusterJob& job) { return job.tpu() ? 8476 : 8471; }

bool by_operator(Kind kind) { return kind != Kind::job && kind != Kind::jobset; }

// torchrun's workers meet at the first node, which opens the store. torchrun would detect that node by host names that
// a pod does not have, so it is told.
void add_torchrun(const KubernetesJob& k, PodParts& parts) {
  parts.set_env("MASTER_ADDR", leader_of(k));
  parts.set_env("MASTER_PORT", std::to_string(kTorchPort));
  parts.before += "opens=0\nif [ \"$node\" = 0 ]; then opens=1 MASTER_ADDR=$POD_IP; fi\n";
}

void add_program(const KubernetesJob& k, PodParts& parts) {
  const std::string leader = leader_of(k), nodes = std::to_string(k.job.nodes.most);
  parts.set_env("MASTER_ADDR", leader);
  parts.set_env("MASTER_PORT", std::to_string(kTorchPort));
  parts.set_env("WORLD_SIZE", nodes);
  parts.set_env("JAX_COORDINATOR_ADDRESS", fmt::format("{}:{}", leader, jax_port(k.job)));
  parts.set_env("JAX_NUM_PROCESSES", nodes);
  parts.before += "export RANK=\"$node\" JAX_PROCESS_ID=\"$node\"\n";
}

}  // namespace

void add_rendezvous(const KubernetesJob& k, PodParts& parts) {
  if (k.by_agent()) return;
  if (k.kind == Kind::jaxjob) {  // its operator uses other names than JAX
    parts.before +=
        "export JAX_COORDINATOR_ADDRESS=\"$COORDINATOR_ADDRESS:$COORDINATOR_PORT\" "
        "JAX_NUM_PROCESSES=\"$NUM_PROCESSES\" JAX_PROCESS_ID=\"$PROCESS_ID\"\n";
  } else if (!by_operator(k.kind)) {
    k.job.launcher == Launcher::torchrun ? add_torchrun(k, parts) : add_program(k, parts);
  }
  for (const auto& [name, value] : k.workload().env) parts.set_env(name, kube_value(value));
  if (const std::string& from = k.workload().resume.from; !from.empty()) parts.set_env(kResumeFrom, kube_value(from));
}

// A command is a program and its arguments: without --no-python, torchrun starts `python -u python3 train.py`.
std::string start_by_others(const KubernetesJob& k) {
  const std::string command = shell_line(k.workload().command);
  if (k.job.launcher == Launcher::program) return "exec " + command;
  if (by_operator(k.kind)) return "exec torchrun --no-python " + command;  // configured by PET_* variables
  return fmt::format(
      "exec torchrun --nnodes={} --nproc_per_node={} --node_rank=\"$node\" --max_restarts=0 \\\n"
      "  --rdzv_backend=c10d --rdzv_endpoint=\"$MASTER_ADDR:$MASTER_PORT\" --rdzv_id={} --rdzv_conf=is_host=$opens \\\n"
      "  --no-python {}",
      k.job.nodes.most, k.job.ranks_per_node, k.job.run, command);
}

}  // namespace systole

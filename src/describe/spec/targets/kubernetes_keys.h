#pragma once
// The section kubernetes of a workload. An empty field is unset.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace systole {

struct KubernetesSpec {
  // The object that runs the job and determines who starts the ranks of a pod; automatic: chosen to fit
  // (operate/targets/kubernetes/manifest.h).
  enum class Kind { automatic, job, jobset, pytorchjob, jaxjob, trainjob } kind = Kind::automatic;
  enum class Launcher { automatic, systole, torchrun, program } launcher = Launcher::automatic;
  std::string name_space;                       // "default"
  std::map<std::string, std::string> selector;  // node labels
  std::string service_account;
  // The job's queue and its place in it (Kueue), its Google identity, and the scraping of its metrics.
  std::string queue, priority, topology, cohort;  // topology: "preferred:block"
  std::optional<std::int64_t> queue_nodes,
      priority_value;   // for queues.yml, which is written if queue_nodes is set
  bool queued = false;  // a ProvisioningRequest provides its nodes
  std::string gcp_service_account;
  std::optional<std::int64_t> metrics_port;
};

}  // namespace systole

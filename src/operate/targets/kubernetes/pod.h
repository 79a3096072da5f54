#pragma once
// The pod that every kind of object starts, one per node. Contributors add its parts, each in its own file: each sees
// the job, and returns additions, warnings and refusals.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "operate/render/cluster_job.h"
#include "operate/render/start_script.h"

namespace systole {

// The input of rendering, with all Kubernetes defaults decided.
struct KubernetesJob {
  const RenderRequest& ask;
  const ClusterJob& job;
  KubernetesSpec::Kind kind;
  std::string space;         // its namespace
  Node labels, annotations;  // for every object

  const Workload& workload() const { return ask.workload; }
  bool by_agent() const { return job.launcher == KubernetesSpec::Launcher::systole; }
  // Agents meet and authenticate by a token.
  bool has_token() const { return by_agent() && !job.alone() && !job.replicas && ask.batch == nullptr; }
};

// A null node is an empty list or map.
struct PodParts {
  Node labels, annotations;          // for the pods, besides those of every object
  Node job_labels, job_annotations;  // for the Job, JobSet, ... itself
  bool suspended = false;            // the job waits for its queue
  Node selector, tolerations;        // for node selection
  Node requests, limits;             // of the container
  Bytes memory{};                    // of the requests and limits
  Node env;                          // items { name, value } or { name, valueFrom }
  Node volumes, mounts;
  Node ports;                    // of the container, besides the agents' port
  std::string account;           // service account in the cluster; empty: none
  Node init_containers;          // with restartPolicy: Always they run beside it
  Node resource_claims, claims;  // of the pod; those used by the container
  Node capabilities;             // names to keep; all others are dropped
  std::string before;            // sh lines that start.sh runs before the start
  std::vector<Node> objects;     // created before the job
  std::vector<std::string> warnings;
  std::vector<Error> wrong;

  // Replaces a variable of this name.
  void set_env(std::string_view name, std::string_view value);
  void set_env_from(std::string_view name, std::string_view field_path);
  void mount(const std::string& name, const std::string& path, bool read_only, Node source);
  void tolerate(std::string_view key, std::string_view value = {});  // effect NoSchedule; without a value: any value
};

// Contributors, in order.
void add_files(const KubernetesJob& k, PodParts& parts);          // start.sh and the files it verifies; the token
void add_claims(const KubernetesJob& k, PodParts& parts);         // persistent volume claims
void add_devices(const KubernetesJob& k, PodParts& parts);        // limits, node selection, provisioning terms
void add_host_share(const KubernetesJob& k, PodParts& parts);     // processors and memory
void add_shared_memory(const KubernetesJob& k, PodParts& parts);  // /dev/shm
void add_tpu_workers(const KubernetesJob& k, PodParts& parts);    // hosts of a slice, and slices
void add_rendezvous(const KubernetesJob& k, PodParts& parts);     // rendezvous of ranks that no agent starts
void add_volumes(const KubernetesJob& k, PodParts& parts);        // other mounts
void add_network(const KubernetesJob& k, PodParts& parts);        // networks between GPUs of several machines
void add_secrets(const KubernetesJob& k, PodParts& parts);        // by reference
void add_identity(const KubernetesJob& k, PodParts& parts);       // Google identity; access to metrics
void add_queue(const KubernetesJob& k, PodParts& parts);          // Kueue admits it
void add_provisioning(const KubernetesJob& k, PodParts& parts);   // nodes all at once; last: needs the whole pod
PodParts pod_parts(const KubernetesJob& k);

// What differs between kinds of objects.
struct PodFrame {
  std::string container = "systole";
  std::string restart = "Never";  // empty: set by the object
  std::string subdomain;          // empty: none, or set by the object
  Node command = Node::sequence({"/bin/sh", "/systole/files/start.sh"});
  // Of the container of a server; null: none.
  Node startup, readiness, liveness, lifecycle;
  Node spread;  // over nodes; null: as the cluster does
};
// { metadata, spec }, as a Job's template.
Node pod_template(const KubernetesJob& k, const PodParts& parts, const PodFrame& frame);
// Seconds from the signal to the kill.
std::int64_t grace_of(const ClusterJob& job);

// How the agents or ranks of a run find each other, for start.sh (start_script_values.cc).
StartScriptValues start_script_values(const KubernetesJob& k, const PodParts& parts);
// The host name of the first pod.
std::string leader_of(const KubernetesJob& k);
// The last line of start.sh if no agent starts the ranks (rendezvous.cc).
std::string start_by_others(const KubernetesJob& k);
// The name of a JobSet's replicated job: "slice" or "node".
std::string replicated_name(const ClusterJob& job);
// A Job's rules for failed pods: Systole's exit codes identify failures that no retry fixes.
Node failure_rules(const KubernetesJob& k, bool ignore_disruptions);

// Commands that grant the account its Google identity: purpose and line.
std::vector<std::pair<std::string, std::string>> identity_commands(const KubernetesJob& k, const PodParts& parts);

// files.cc: objects beside the job.
constexpr int kRendezvousPort = 7000;
Node config_map(const KubernetesJob& k, const PodParts& parts);
Node headless_service(const KubernetesJob& k);
Node network_policy(const KubernetesJob& k);

// metadata of the job itself.
Node job_metadata(const KubernetesJob& k, const PodParts& parts);
// `more` merged over `base`; if one is null, the other.
Node merged(Node base, const Node& more);

// The objects, one file each. Unsupported features go to `parts.wrong`.
Node job_object(const KubernetesJob& k, PodParts& parts);
Node jobset_object(const KubernetesJob& k, PodParts& parts);
Node pytorchjob_object(const KubernetesJob& k, PodParts& parts);
Node jaxjob_object(const KubernetesJob& k, PodParts& parts);
Node trainjob_object(const KubernetesJob& k, PodParts& parts);  // adds its TrainingRuntime to `parts.objects`

// In the largest exact unit; rounded up to a whole KiB.
std::string quantity(Bytes bytes);
// Whether the folder of runs is in a claim or volume; otherwise its files are deleted with the pod.
bool is_held(const Workload& w, const std::string& folder);
// The volume that has the folder, if it is made with the job, and so is empty. Null: none, or one that was there before.
const VolumeSpec* new_volume_of(const Workload& w, const std::string& folder);

}  // namespace systole

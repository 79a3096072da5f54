#pragma once
// The pod that every kind of object starts, one a node. Contributors fill its parts, each in a file of its own: they
// see the job and say what they add, what they warn of and what they cannot do.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "operate/render/cluster_job.h"
#include "operate/render/start_script.h"

namespace systole {

// What is rendered, with all that Kubernetes leaves open decided.
struct KubernetesJob {
  const RenderAsk& ask;
  const ClusterJob& job;
  KubernetesSpec::Kind kind;
  std::string space;         // its namespace
  Node labels, annotations;  // of every object

  const Workload& workload() const { return ask.workload; }
  bool by_agent() const { return job.launcher == KubernetesSpec::Launcher::systole; }
  // Agents meet, and none but them: they hold a token.
  bool has_token() const { return by_agent() && !job.alone(); }
};

// A null node is an empty list or map.
struct PodParts {
  Node labels, annotations;          // of the pods, beside those of every object
  Node job_labels, job_annotations;  // of the Job, JobSet, ... itself
  bool suspended = false;            // the job waits until a queue lets it go
  Node selector, tolerations;        // by which nodes are found
  Node requests, limits;             // of the container
  Bytes memory{};                    // of these
  Node env;                          // { name, value } or { name, valueFrom } each
  Node volumes, mounts;
  Node ports;                    // of the container, beside the one at which agents meet
  std::string account;           // as whom it speaks to the cluster; empty: as nobody
  Node init_containers;          // with restartPolicy: Always they run beside it
  Node resource_claims, claims;  // of the pod; those that the container uses
  Node capabilities;             // names: all others are dropped
  std::string before;            // lines of sh, run in start.sh before the start
  std::vector<Node> objects;     // made before the job
  std::vector<std::string> warnings;
  std::vector<Error> wrong;

  // In the place of what has this name.
  void set_env(std::string_view name, std::string_view value);
  void set_env_from(std::string_view name, std::string_view field_path);
  void mount(const std::string& name, const std::string& path, bool read_only, Node source);
  void tolerate(std::string_view key, std::string_view value = {});  // NoSchedule; without a value any
};

// Contributors, in the order in which they add.
void add_files(const KubernetesJob& k, PodParts& parts);          // start.sh and what it holds to; the token
void add_claims(const KubernetesJob& k, PodParts& parts);         // persistent volume claims
void add_devices(const KubernetesJob& k, PodParts& parts);        // limits, nodes that have them, terms
void add_host_share(const KubernetesJob& k, PodParts& parts);     // processors and memory
void add_shared_memory(const KubernetesJob& k, PodParts& parts);  // /dev/shm
void add_tpu_workers(const KubernetesJob& k, PodParts& parts);    // of a slice, and slices
void add_rendezvous(const KubernetesJob& k, PodParts& parts);     // where ranks meet that no agent starts
void add_volumes(const KubernetesJob& k, PodParts& parts);        // what else is mounted
void add_network(const KubernetesJob& k, PodParts& parts);        // how GPUs of several machines reach each other
void add_secrets(const KubernetesJob& k, PodParts& parts);        // by reference
void add_identity(const KubernetesJob& k, PodParts& parts);       // who it is to Google; who reads its metrics
void add_queue(const KubernetesJob& k, PodParts& parts);          // Kueue lets it begin
void add_provisioning(const KubernetesJob& k, PodParts& parts);   // nodes all at once; last: it needs the whole pod
PodParts pod_parts(const KubernetesJob& k);

// What differs by the kind of object.
struct PodFrame {
  std::string container = "systole";
  std::string restart = "Never";  // empty: the object says it
  std::string subdomain;          // empty: none, or the object says it
};
// { metadata, spec }, as a Job's template.
Node pod_template(const KubernetesJob& k, const PodParts& parts, const PodFrame& frame);
// Seconds from the signal to the kill.
std::int64_t grace_of(const ClusterJob& job);

// How the agents or ranks of a run find each other, for start.sh (meeting.cc).
Meeting meeting_of(const KubernetesJob& k, const PodParts& parts);
// The name at which the first pod is found.
std::string leader_of(const KubernetesJob& k);
// The last line of start.sh where no agent starts the ranks (rendezvous.cc).
std::string start_by_others(const KubernetesJob& k);
// What a JobSet calls its jobs: "slice" or "node".
std::string replicated_name(const ClusterJob& job);
// Rules of a Job for pods that fail: those of its own program, whose exit codes say what no retry changes.
Node failure_rules(const KubernetesJob& k, bool ignore_disruptions);

// Commands that let the account be whom it should be to Google: what for, and the line.
std::vector<std::pair<std::string, std::string>> identity_commands(const KubernetesJob& k, const PodParts& parts);

// files.cc: what stands beside the job.
constexpr int kRendezvousPort = 7000;
Node config_map(const KubernetesJob& k, const PodParts& parts);
Node headless_service(const KubernetesJob& k);
Node network_policy(const KubernetesJob& k);

// metadata of the job itself.
Node job_metadata(const KubernetesJob& k, const PodParts& parts);
// `more` laid over `base`; null gives the other.
Node merged(Node base, const Node& more);

// The objects, one file each. What one cannot do it notes in `parts.wrong`.
Node job_object(const KubernetesJob& k, PodParts& parts);
Node jobset_object(const KubernetesJob& k, PodParts& parts);
Node pytorchjob_object(const KubernetesJob& k, PodParts& parts);
Node jaxjob_object(const KubernetesJob& k, PodParts& parts);
Node trainjob_object(const KubernetesJob& k, PodParts& parts);  // its TrainingRuntime is added to `parts.objects`

// In the largest unit that says it exactly; up to a whole KiB.
std::string quantity(Bytes bytes);
// The folder of runs is in a claim or volume, or what a pod writes ends with it.
bool is_held(const Workload& w, const std::string& folder);

}  // namespace systole

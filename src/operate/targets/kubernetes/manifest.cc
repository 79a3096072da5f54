// job.yaml: the object that runs the job and the objects beside it, in the order of creation. serve.yaml: those of
// server.h.
#include "operate/targets/kubernetes/manifest.h"

#include <fmt/ranges.h>

#include <set>

#include "ground/base/errors.h"
#include "ground/base/letter_case.h"
#include "ground/base/sourced_yaml.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/render/topology.h"
#include "operate/targets/kubernetes/batch.h"
#include "operate/targets/kubernetes/pod.h"
#include "operate/targets/kubernetes/queue.h"
#include "operate/targets/kubernetes/server.h"
#include "operate/targets/picture.h"

namespace systole {
namespace {

using Kind = KubernetesSpec::Kind;
using Launcher = KubernetesSpec::Launcher;

constexpr const char *kJobFile = "job.yaml", *kServerFile = "serve.yaml";

struct KindTraits {
  const char* name;     // in the workload
  const char* objects;  // resource name for kubectl delete
  bool own_service;     // its operator creates the Service
  Node (*object)(const KubernetesJob&, PodParts&);
};

const KindTraits& traits_of(Kind kind) {
  static const KindTraits kTraits[] = {{"auto", "", false, nullptr},
                                       {"job", "job", false, job_object},
                                       {"jobset", "jobset", true, jobset_object},
                                       {"pytorchjob", "pytorchjob", true, pytorchjob_object},
                                       {"jaxjob", "jaxjob", true, jaxjob_object},
                                       {"trainjob", "trainjob,trainingruntime", true, trainjob_object}};
  return kTraits[static_cast<int>(kind)];
}

Kind kind_of(const Workload& w, const ClusterJob& job) {
  if (w.kubernetes.kind != Kind::automatic) return w.kubernetes.kind;
  return job.slices > 1 || (job.tpu() && !job.alone()) ? Kind::jobset : Kind::job;
}

KubernetesJob kubernetes_job(const RenderRequest& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  KubernetesJob k{.ask = ask,
                  .job = job,
                  .kind = kind_of(w, job),
                  .space = w.kubernetes.name_space.empty() ? "default" : w.kubernetes.name_space,
                  .labels = Node::map(),
                  .annotations = Node::map()};
  k.labels.set("app.kubernetes.io/name", "systole").set("app.kubernetes.io/instance", job.run);
  k.labels.set("app.kubernetes.io/managed-by", "systole").set("systole/run", job.run);
  k.annotations.set("systole/workload-sha256", ask.workload_file.sha256).set("systole/version", ask.version);
  for (const auto& [name, value] : w.labels) k.annotations.set("systole.label/" + name, value);
  return k;
}

// Agents stop at the budget. Their ledger must outlive a pod, in the run's folder, and their exit code must end the
// job.
void check_budget(const KubernetesJob& k, PodParts& parts) {
  if (!k.by_agent() || (k.kind != Kind::job && k.kind != Kind::jobset)) {
    parts.wrong.push_back(key_error(ErrorKind::unsupported, "objective.budget",
                                    "a {} is begun again however its pods end", traits_of(k.kind).name)
                              .hinted("kubernetes.kind: job or jobset, kubernetes.launcher: systole"));
  } else if (!k.job.folder.starts_with('/') || !is_held(k.workload(), k.job.folder)) {
    parts.wrong.push_back(key_error(ErrorKind::invalid, "objective.budget",
                                    "folder '{}' is in no claim: what it cost would end with its pod",
                                    comment_text(k.job.folder))
                              .hinted("claims: { /runs: NAME }, folder: /runs"));
  }
}

// Checks what a workload must have, and what no pod supports.
void check(const KubernetesJob& k, PodParts& parts) {
  const Workload& w = k.workload();
  const auto note = [&](Error e) { parts.wrong.push_back(std::move(e)); };
  if (w.image.empty()) {
    note(key_error(ErrorKind::invalid, "image", "a pod needs one, with {} in it",
                   k.by_agent() || k.job.replicas ? k.ask.version : std::string("the program"))
             .hinted("image: REGISTRY/NAME@sha256:DIGEST"));
  } else if (const Status image = check_image(w.image); !image.ok()) {
    note(image.error());
  }
  if (w.command.empty() && !k.job.replicas && (!w.folder.starts_with('/') || !is_held(w, k.job.folder)))
    note(key_error(ErrorKind::invalid, "folder", "'{}' is in no claim: checkpoints would end with their pod",
                   comment_text(k.job.folder))
             .hinted("claims: { /runs: NAME }, folder: /runs"));
  if (w.objective.budget) check_budget(k, parts);
  for (const auto& [name, value] : w.labels)
    if (!is_label_name("systole.label/" + name))
      note(key_error(ErrorKind::invalid, "labels", "'{}' cannot be the name of an annotation", comment_text(name))
               .hinted("up to 63 letters, digits, '-', '_' and '.'"));
}

// Which launchers each kind allows.
void check_kind(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  const char* kind = traits_of(k.kind).name;
  const bool kubeflow = k.kind != Kind::job && k.kind != Kind::jobset;
  const auto note = [&](Error e) { parts.wrong.push_back(std::move(e)); };
  if (k.workload().command.empty() && (kubeflow || !k.by_agent()))
    note(error(ErrorKind::unsupported, "kubernetes.{}: a model is started by systole, in a Job or JobSet",
               kubeflow ? fmt::format("kind: {}", kind) : "launcher")
             .hinted("kubernetes: { kind: auto, launcher: systole }")
             .about(kubeflow ? "kubernetes.kind" : "kubernetes.launcher"));
  else if (kubeflow && k.by_agent())
    note(
        key_error(ErrorKind::unsupported, "kubernetes.launcher", "systole, and a {} starts ranks by its operator", kind)
            .hinted("kubernetes.kind: job or jobset"));
  if (kubeflow && job.tpu())
    note(key_error(ErrorKind::unsupported, "kubernetes.kind", "{} does not tell the hosts of {} of each other", kind,
                   job.on)
             .hinted("kubernetes.kind: jobset"));
  if (job.launcher == Launcher::program && job.ranks_per_node > 1)
    note(key_error(ErrorKind::invalid, "resources.ranks_per_node", "{}, and kubernetes.launcher: program starts one",
                   job.ranks_per_node)
             .hinted("kubernetes.launcher: torchrun or systole"));
  if (job.launcher == Launcher::torchrun && job.tpu())
    note(key_error(ErrorKind::invalid, "kubernetes.launcher", "torchrun does not tell ranks of TPUs")
             .hinted("kubernetes.launcher: program, or systole"));
  if (k.workload().ranks.tls && !k.by_agent())
    note(key_error(ErrorKind::unsupported, "ranks.tls",
                   "here {} starts the ranks, and nothing of Systole's is between them",
                   job.launcher == Launcher::torchrun ? "torchrun" : "the cluster")
             .hinted("kubernetes: { kind: job, launcher: systole }, or take ranks.tls out"));
}

std::string text_of(const KubernetesJob& k, const std::vector<Node>& objects) {
  std::string text = made_from(k.ask, k.job) + k.ask.planned + topology_comment(k.ask, k.job);
  for (std::size_t o = 0; o < objects.size(); ++o) text += (o > 0 ? "---\n" : "") + to_sourced_yaml(objects[o]);
  return text;
}

std::string manifest(const KubernetesJob& k, PodParts& parts) {
  Node job = traits_of(k.kind).object(k, parts);
  std::vector<Node> objects = {config_map(k, parts)};
  if (!k.job.alone()) {
    if (!traits_of(k.kind).own_service) objects.push_back(headless_service(k));
    objects.push_back(network_policy(k));
  }
  for (const Node& one : parts.objects) objects.push_back(one);
  objects.push_back(std::move(job));
  return text_of(k, objects);
}

// Kinds of the objects beside the job, for kubectl: those deleted with the run, or those that hold its data.
std::string made_kinds(const PodParts& parts, bool data) {
  std::set<std::string> kinds;
  for (const Node& object : parts.objects) {
    const std::string kind = lower_case(object.find("kind")->text());
    const bool holds = kind.starts_with("persistentvolume") || kind == "storageclass";
    if (holds == data) kinds.insert(kind);
  }
  return fmt::format("{}", fmt::join(kinds, ","));
}

void tell(const KubernetesJob& k, const PodParts& parts, Rendered& rendered) {
  const Workload& w = k.workload();
  const ClusterJob& job = k.job;
  const bool serves = job.replicas.has_value(), token = k.has_token() || serves;
  const std::string kubectl = w.kubernetes.name_space.empty() ? "kubectl" : "kubectl -n " + w.kubernetes.name_space;
  const auto command = [&](const char* what, std::string line) {
    rendered.commands.emplace_back(what, std::move(line));
  };
  if (!w.kubernetes.name_space.empty() && w.kubernetes.name_space != "default")
    command("namespace",
            fmt::format("kubectl get namespace {0} >/dev/null 2>&1 || kubectl create namespace {0}", k.space));
  if (token)
    command("token", fmt::format("od -An -tx1 -N16 /dev/urandom | tr -d ' \\n' | {} create secret generic {}-token "
                                 "--from-file=token=/dev/stdin",
                                 kubectl, job.run));
  for (auto& [what, line] : identity_commands(k, parts)) rendered.commands.emplace_back(what, line);
  if (w.kubernetes.queue_nodes)
    command("queue", fmt::format("{} apply --server-side -f {}/queues.yml # once, by who keeps the cluster", kubectl,
                                 shell_word(k.ask.place)));
  if (serves)
    for (auto& [what, line] : scaling_commands(k)) command(what.c_str(), line);
  command("start", fmt::format("{} apply --server-side -f {}/{}", kubectl, shell_word(k.ask.place),
                               serves ? kServerFile : kJobFile));
  command("look", fmt::format("{} get pods -l systole/run={}", kubectl, job.run));
  const std::string made = made_kinds(parts, false), data = made_kinds(parts, true);
  const std::string kinds = serves ? kServerKinds
                            : k.ask.batch != nullptr
                                ? fmt::format("{},configmap", batch_kind(k))
                                : fmt::format("{},service,configmap,networkpolicy", traits_of(k.kind).objects);
  if (serves) command("reach", fmt::format("{} port-forward service/{} {}", kubectl, job.run, kServerPort));
  command("stop",
          fmt::format("{} delete {}{}{} -l systole/run={}", kubectl, kinds, made.empty() ? "" : ",", made, job.run));
  if (!data.empty()) command("data", fmt::format("{} delete {} -l systole/run={}", kubectl, data, job.run));
  if (token) command("forget", fmt::format("{} delete secret {}-token", kubectl, job.run));
  const auto warn = [&](std::string text) { rendered.warnings.push_back(std::move(text)); };
  if (w.image.find('@') == w.image.npos)
    warn(fmt::format("image: {} is what its tag names today; a digest is one image for ever", w.image));
  if (job.longest && !w.kubernetes.queued)
    warn("resources.longest: nothing ends a Job then, as it could not save and go on; it only says what to expect");
  if (!w.command.empty() && k.by_agent() && k.ask.batch == nullptr && !is_held(w, job.folder))
    warn(fmt::format("folder: {} is in no claim: the logs of its ranks end with their pods", comment_text(job.folder)));
}

}  // namespace

// Kubeflow's kinds have their own launchers.
JobDefaults kubernetes_defaults(const Workload& w) {
  if (w.kubernetes.launcher != Launcher::automatic) return {.launcher = w.kubernetes.launcher};
  switch (w.kubernetes.kind) {
    case Kind::pytorchjob:
    case Kind::trainjob: return {.launcher = Launcher::torchrun};
    case Kind::jaxjob: return {.launcher = Launcher::program};
    default: return {.launcher = Launcher::systole};
  }
}

Result<Rendered> render_kubernetes(const RenderRequest& ask, const ClusterJob& job) {
  const KubernetesJob k = kubernetes_job(ask, job);
  PodParts first;
  check(k, first);
  const bool serves = job.replicas.has_value(), batch = ask.batch != nullptr;
  PodParts parts = serves ? server_parts(k) : batch ? batch_parts(k) : pod_parts(k);
  parts.wrong.insert(parts.wrong.begin(), std::make_move_iterator(first.wrong.begin()),
                     std::make_move_iterator(first.wrong.end()));
  if (!serves && !batch) check_kind(k, parts);
  Rendered rendered;
  if (!ask.workload.kubernetes.name_space.empty()) rendered.where["namespace"] = k.space;
  if (serves)
    rendered.files.push_back({kServerFile, text_of(k, server_objects(k, parts))});
  else
    rendered.files.push_back({kJobFile, batch ? text_of(k, batch_objects(k, parts)) : manifest(k, parts)});
  // Named .yml because submit sends files that end in .yaml; this one is for the cluster's administrator.
  if (ask.workload.kubernetes.queue_nodes) rendered.files.push_back({"queues.yml", queues_file(k, parts)});
  if (!parts.wrong.empty()) return together(std::move(parts.wrong));
  rendered.warnings = std::move(parts.warnings);
  rendered.drawing = picture_of(ask, job, {.cluster = "Kubernetes, namespace " + k.space});
  tell(k, parts, rendered);
  return rendered;
}

}  // namespace systole

// job.yaml: an Indexed Job whose pods are the nodes, a headless Service by which they find each other, the files that
// they start from, and a policy that lets nobody else in.
#include <algorithm>
#include <cmath>

#include "ground/base/sourced_yaml.h"
#include "operate/render/cluster_job.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/render/start_script.h"
#include "operate/render/template.h"

namespace systole {
namespace {

constexpr int kPort = 7000;
constexpr std::int64_t kUser = 10001;          // nobody's on any image
constexpr std::size_t kMostFiles = 900 << 10;  // a ConfigMap takes 1 MiB, names and all

constexpr const char* kFiles = R"(
apiVersion: v1
kind: ConfigMap
metadata: { name: $name, namespace: $namespace, labels: $labels, annotations: $annotations }
data: $files
)";

constexpr const char* kService = R"(
apiVersion: v1
kind: Service
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: { batch.kubernetes.io/job-name: $name }
  ports: [{ name: rendezvous, port: $port }]
)";

constexpr const char* kPolicy = R"(
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  podSelector: { matchLabels: { systole/run: $name } }
  policyTypes: [Ingress]
  ingress: [{ from: [{ podSelector: { matchLabels: { systole/run: $name } } }] }]
)";

// Retries are counted by index: counted by Job, pods that end together, as the nodes of a run do, make the controller
// wait 10 s for the first and twice as long for each further one before it begins them again: 80 s for four, 10 minutes
// for seven and more.
constexpr const char* kJob = R"(
apiVersion: batch/v1
kind: Job
metadata: { name: $name, namespace: $namespace, labels: $labels, annotations: $annotations }
spec:
  completionMode: Indexed
  completions: $nodes
  parallelism: $nodes
  backoffLimitPerIndex: $retries
  maxFailedIndexes: 0
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
      - { action: Ignore, onPodConditions: [{ type: DisruptionTarget, status: "True" }] }
      - { action: FailJob, onExitCodes: { containerName: systole, operator: In, values: [1, 2, 3] } }
  template:
    metadata: { labels: $labels, annotations: $annotations }
    spec:
      subdomain: $subdomain
      restartPolicy: Never
      terminationGracePeriodSeconds: $grace
      serviceAccountName: $account
      automountServiceAccountToken: $mounts_token
      nodeSelector: $selector
      tolerations: $tolerations
      securityContext:
        runAsNonRoot: true
        runAsUser: $user
        runAsGroup: $user
        fsGroup: $user
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: systole
          image: $image
          command: [/bin/sh, /systole/files/start.sh]
          env:
            - { name: HOME, value: /tmp }
            - { name: POD_IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
          ports: $ports
          resources: { requests: $requests, limits: $limits }
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } }
          volumeMounts: $mounts
      volumes: $volumes
)";

// The folder of runs is a claim's, or what a pod writes ends with it.
bool is_held(const Workload& w, const std::string& folder) {
  return std::ranges::any_of(
      w.claims, [&](const auto& claim) { return folder == claim.first || folder.starts_with(claim.first + "/"); });
}

std::vector<Error> refusals(const RenderAsk& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  std::vector<Error> wrong;
  const auto note = [&](Error e) { wrong.push_back(std::move(e)); };
  if (w.image.empty()) {
    note(error(ErrorKind::invalid, "image: a pod needs one, with systole {} in it", ask.version)
             .hinted("image: REGISTRY/NAME@sha256:DIGEST"));
  } else if (const Status image = check_image(w.image); !image.ok()) {
    note(image.error());
  }
  if (job.nodes.elastic())
    note(error(ErrorKind::unsupported, "resources.nodes: {}:{}: an Indexed Job has as many pods as it says",
               job.nodes.least, job.nodes.most)
             .hinted(fmt::format("resources.nodes: {}; slurm takes a range", job.nodes.most)));
  if (!w.resources.threads)
    note(error(ErrorKind::invalid, "resources.threads: a pod says how many processors it needs")
             .hinted("resources: { threads: 8 }: of each rank"));
  if (!w.resources.memory)
    note(error(ErrorKind::invalid, "resources.memory: a pod says how much memory it needs")
             .hinted("resources: { memory: 16GiB }: of all ranks of a node"));
  if (w.command.empty() && (!w.folder.starts_with('/') || !is_held(w, job.folder)))
    note(error(ErrorKind::invalid, "folder: '{}' is in no claim: checkpoints would end with their pod",
               comment_text(job.folder))
             .hinted("claims: { /runs: NAME }, folder: /runs"));
  if (!w.slurm.array && ask.workload_file.text.size() + ask.plan_file.text.size() > kMostFiles)
    note(error(ErrorKind::unsupported, "workload and plan have {} KiB; a ConfigMap takes 1 MiB with all that is in it",
               (ask.workload_file.text.size() + ask.plan_file.text.size()) >> 10)
             .hinted("a plan without its search: systole plan --json keeps it apart"));
  if (w.slurm.array)
    note(error(ErrorKind::unsupported, "slurm.array: a Job here is one run")
             .hinted("render each seed: --set train.seed=N --run NAME-N"));
  for (const auto& [path, claim] : w.claims) {
    const Result<std::string> name = dns_label(claim, 63, "a claim");
    if (!name.ok() || *name != claim)
      note(error(ErrorKind::invalid, "claims: '{}' is no name of a claim", comment_text(claim))
               .hinted("lower-case letters, digits and '-'"));
    if (path == "/systole" || path.starts_with("/systole/"))
      note(error(ErrorKind::invalid, "claims: {} is where the files of the run are", comment_text(path))
               .hinted("another path"));
  }
  for (const auto& [name, value] : w.kubernetes.selector)
    if (!is_label_name(name) || !is_label_value(value))
      note(error(ErrorKind::invalid, "kubernetes.selector: '{}: {}' is no label", comment_text(name),
                 comment_text(value))
               .hinted("[PREFIX/]NAME: VALUE, up to 63 letters, digits, '-', '_' and '.' each"));
  for (const auto& [name, value] : w.labels)
    if (!is_label_name("systole.label/" + name))
      note(error(ErrorKind::invalid, "labels: '{}' cannot be the name of an annotation", comment_text(name))
               .hinted("up to 63 letters, digits, '-', '_' and '.'"));
  return wrong;
}

// In the largest unit that says it exactly; up to a whole KiB.
std::string quantity(Bytes bytes) {
  for (const auto& [unit, name] : {std::pair(kGiB, "Gi"), std::pair(kMiB, "Mi")})
    if (bytes.count() % unit.count() == 0) return fmt::format("{}{}", bytes.count() / unit.count(), name);
  return fmt::format("{}Ki", (bytes.count() + kKiB.count() - 1) / kKiB.count());
}

struct Volumes {
  Node volumes = Node::sequence(), mounts = Node::sequence();
  void add(const std::string& name, const std::string& path, bool read_only, Node source) {
    source.set("name", name);
    volumes.push(std::move(source));
    Node mount = Node::map({{"name", name}, {"mountPath", path}});
    if (read_only) mount.set("readOnly", true);
    mounts.push(std::move(mount));
  }
};

Volumes volumes_of(const RenderAsk& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  Volumes all;
  all.add("files", "/systole/files", true, Node::map({{"configMap", Node::map({{"name", job.run + "-files"}})}}));
  if (!job.alone()) {
    all.add("token", "/systole/token", true,
            Node::map({{"secret", Node::map({{"secretName", job.run + "-token"}, {"defaultMode", 0440}})}}));
  }
  int n = 0;
  for (const auto& [path, claim] : w.claims)
    all.add(fmt::format("claim-{}", n++), path, false,
            Node::map({{"persistentVolumeClaim", Node::map({{"claimName", claim}})}}));
  if (!w.command.empty() && job.gpus_per_node > 0) {  // libraries of collectives meet there
    const Bytes most = std::min(Bytes(w.resources.memory->count() / 8), 64 * kGiB);
    all.add("dshm", "/dev/shm", false,
            Node::map({{"emptyDir", Node::map({{"medium", "Memory"}, {"sizeLimit", quantity(most)}})}}));
  }
  return all;
}

Meeting meeting_of(const RenderAsk& ask, const ClusterJob& job) {
  Meeting meeting{.files = "/systole/files", .folder = shell_word(job.folder + "/" + job.run)};
  // What a workload names without '/' lies in the folder of runs, which all nodes see.
  if (ask.workload.command.empty()) meeting.before = fmt::format("cd {}\n", shell_word(job.folder));
  if (job.alone()) return meeting;
  // The first leads; it listens at its own address, which it has before the Service has a name for it.
  meeting.before +=
      fmt::format("if [ \"$JOB_COMPLETION_INDEX\" = 0 ]; then leader=$POD_IP; else leader={0}-0.{0}; fi\n", job.run);
  meeting.leader = "$leader";
  meeting.port = std::to_string(kPort);
  meeting.node = "node-$JOB_COMPLETION_INDEX";
  meeting.host = "$POD_IP";
  meeting.token_file = "/systole/token/token";
  return meeting;
}

std::string namespace_of(const Workload& w) {
  return w.kubernetes.name_space.empty() ? "default" : w.kubernetes.name_space;
}

Node job_object(const RenderAsk& ask, const ClusterJob& job, const Node& labels, const Node& annotations) {
  const Workload& w = ask.workload;
  Node selector, tolerations, requests, limits, ports;
  for (const auto& [key, value] : w.kubernetes.selector) selector.set(key, value);
  const std::string memory = quantity(*w.resources.memory);
  requests.set("cpu", std::to_string(*w.resources.threads * job.ranks_per_node)).set("memory", memory);
  limits.set("memory", memory);
  if (job.gpus_per_node > 0) {
    for (Node* of : {&requests, &limits}) of->set("nvidia.com/gpu", std::to_string(job.gpus_per_node));
    tolerations.push(Node::map({{"key", "nvidia.com/gpu"}, {"operator", "Exists"}, {"effect", "NoSchedule"}}));
  }
  if (!job.alone()) ports.push(Node::map({{"name", "rendezvous"}, {"containerPort", kPort}}));
  Volumes volumes = volumes_of(ask, job);
  const std::string& account = w.kubernetes.service_account;
  std::vector<std::pair<std::string, Node>> holes;
  const auto hole = [&](const char* name, Node value) { holes.emplace_back(name, std::move(value)); };
  hole("name", job.run);
  hole("namespace", namespace_of(w));
  hole("labels", labels);
  hole("annotations", annotations);
  hole("nodes", job.nodes.most);
  hole("retries", job.retries);
  hole("subdomain", job.alone() ? Node() : Node(job.run));
  hole("grace", static_cast<std::int64_t>(std::ceil(job.notice.count())) + 5);
  hole("account", account.empty() ? Node() : Node(account));
  hole("mounts_token", !account.empty());
  hole("selector", std::move(selector));
  hole("tolerations", std::move(tolerations));
  hole("user", kUser);
  hole("image", w.image);
  hole("ports", std::move(ports));
  hole("requests", std::move(requests));
  hole("limits", std::move(limits));
  hole("mounts", std::move(volumes.mounts));
  hole("volumes", std::move(volumes.volumes));
  return fill(kJob, std::move(holes));
}

std::string manifest(const RenderAsk& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  const std::string space = namespace_of(w);
  Node labels = Node::map();
  labels.set("app.kubernetes.io/name", "systole").set("app.kubernetes.io/instance", job.run);
  labels.set("app.kubernetes.io/managed-by", "systole").set("systole/run", job.run);
  Node annotations = Node::map();
  annotations.set("systole/workload-sha256", ask.workload_file.sha256).set("systole/version", ask.version);
  for (const auto& [name, value] : w.labels) annotations.set("systole.label/" + name, value);
  Node files = Node::map();
  files.set("start.sh", start_script(ask, job, meeting_of(ask, job)));
  for (const RenderedFile& file : carried_files(ask)) files.set(file.path, file.text);
  std::vector<Node> objects = {fill(kFiles, {{"name", job.run + "-files"},
                                             {"namespace", space},
                                             {"labels", labels},
                                             {"annotations", annotations},
                                             {"files", files}})};
  if (!job.alone()) {
    objects.push_back(fill(kService, {{"name", job.run}, {"namespace", space}, {"labels", labels}, {"port", kPort}}));
    objects.push_back(fill(kPolicy, {{"name", job.run}, {"namespace", space}, {"labels", labels}}));
  }
  objects.push_back(job_object(ask, job, labels, annotations));
  std::string text = made_from(ask, job);
  for (std::size_t o = 0; o < objects.size(); ++o) text += (o > 0 ? "---\n" : "") + to_sourced_yaml(objects[o]);
  return text;
}

void tell(const RenderAsk& ask, const ClusterJob& job, Rendered& rendered) {
  const Workload& w = ask.workload;
  const std::string kubectl = w.kubernetes.name_space.empty() ? "kubectl" : "kubectl -n " + w.kubernetes.name_space;
  const auto command = [&](const char* what, std::string line) {
    rendered.commands.emplace_back(what, std::move(line));
  };
  if (!job.alone())
    command("token", fmt::format("od -An -tx1 -N16 /dev/urandom | tr -d ' \\n' | {} create secret generic {}-token "
                                 "--from-file=token=/dev/stdin",
                                 kubectl, job.run));
  command("start", fmt::format("{} apply --server-side -f {}/job.yaml", kubectl, shell_word(ask.place)));
  command("look", fmt::format("{} get pods -l systole/run={}", kubectl, job.run));
  command("stop", fmt::format("{} delete job,service,configmap,networkpolicy -l systole/run={}", kubectl, job.run));
  if (!job.alone()) command("forget", fmt::format("{} delete secret {}-token", kubectl, job.run));
  const auto warn = [&](std::string text) { rendered.warnings.push_back(std::move(text)); };
  if (w.image.find('@') == w.image.npos)
    warn(fmt::format("image: {} is what its tag names today; a digest is one image for ever", w.image));
  if (job.longest) warn("resources.longest: a Job has no end that lets it save and go on; it is not used");
  if (!w.command.empty() && !is_held(w, job.folder))
    warn(fmt::format("folder: {} is in no claim: the logs of its ranks end with their pods", comment_text(job.folder)));
}

}  // namespace

Result<Rendered> render_kubernetes(const RenderAsk& ask, const ClusterJob& job) {
  if (std::vector<Error> wrong = refusals(ask, job); !wrong.empty()) {
    Error first = std::move(wrong.front());
    first.others.assign(std::make_move_iterator(wrong.begin() + 1), std::make_move_iterator(wrong.end()));
    return first;
  }
  Rendered rendered;
  rendered.run = job.run;
  rendered.folder = job.folder + "/" + job.run;
  rendered.files.push_back({"job.yaml", manifest(ask, job)});
  tell(ask, job, rendered);
  return rendered;
}

}  // namespace systole

#include "operate/import/manifest.h"

#include <algorithm>
#include <limits>

#include "operate/import/flags.h"
#include "operate/import/pod.h"
#include "operate/import/rendered_manifest.h"

namespace systole {
namespace {

struct Reason {
  std::string_view part, why;
};
constexpr std::string_view kOwn = "render writes its own", kAdd =
                                                               "no key of a workload says it; add it to what "
                                                               "render writes";
constexpr std::string_view kProbes = "the agent sees a rank that ends or hangs: ranks.patience",
                           kPlace = "where nodes stand: kubernetes.selector says it by their labels";
// Reasons for unsupported fields, by a part of their path; the first match counts.
constexpr Reason kReasons[] = {
    {"status", "the server writes it"},
    {"metadata.uid", "the server writes it"},
    {"metadata.generation", "the server writes it"},
    {"metadata.selfLink", "the server writes it"},
    {"metadata.ownerReferences", "the server writes it"},
    {"metadata.finalizers", "the server writes it"},
    {"resourceVersion", "the server writes it"},
    {"creationTimestamp", "the server writes it"},
    {"managedFields", "the server writes it"},
    {"annotations", kOwn},
    {"app.kubernetes.io/", kOwn},
    {"jobset.sigs.k8s.io/", kOwn},
    {"initContainers", "the image has what is set up before, or command does it"},
    {"envFrom", "which variables that map or secret has is known only there: env names each, secrets refers to them"},
    {"livenessProbe", kProbes},
    {"readinessProbe", "nobody asks a rank for readiness: ranks meet by themselves"},
    {"startupProbe", kProbes},
    {"lifecycle", "what runs before and after belongs into command; ranks get TERM, and ranks.notice to save in"},
    {"workingDir", "command goes there: cd"},
    {"stdin", "ranks have no terminal and no standard input"},
    {".tty", "ranks have no terminal and no standard input"},
    {"terminationMessage", "each rank's lines are kept with the run: systole logs"},
    {"resizePolicy", "a run keeps what it began with"},
    {"restartPolicy", "the agent starts ranks again: ranks.retries"},
    {"volume", "claims mounts persistent volume claims; others: add them to what render writes"},
    {"securityContext", "render's pods are nobody's (user 10001) and have no privileges"},
    {"hostNetwork", "render's pods have a network of their own, which policies hold for"},
    {"hostPID", "render's pods see no processes but their own"},
    {"hostIPC", "render's pods share no memory with their node"},
    {"shareProcessNamespace", "render's pods have one container"},
    {"hostAliases", "render's pods have a network of their own"},
    {"dnsPolicy", "render's pods have a network of their own"},
    {"dnsConfig", "render's pods have a network of their own"},
    {"imagePullSecrets", "the account that pulls has it: kubernetes.service_account"},
    {"automountServiceAccountToken", "render's pods have no token of the server's"},
    {"serviceAccount", "kubernetes.service_account says it"},
    {"affinity", kPlace},
    {"topologySpreadConstraints", kPlace},
    {"nodeName", kPlace},
    {"priorityClassName", "kubernetes.priority says it where Kueue runs"},
    {"preemptionPolicy", "kubernetes.priority says it where Kueue runs"},
    {"schedulerName", kAdd},
    {"runtimeClassName", kAdd},
    {"tolerations", "render's pods tolerate what GPU nodes refuse; others: add them to what render writes"},
    {"google.com/tpu", "resources.accelerators says TPUs, as v5e:2x2"},
    {"nvidia.com/", "GPUs alone are asked for by number"},
    {"ephemeral-storage", kAdd},
    {"hugepages", kAdd},
    {"kueue.x-k8s.io/", "kubernetes.queue says which queue it waits in"},
    {"suspend", "whether it waits is said when it is submitted"},
    {"backoffLimitPerIndex", "ranks.retries is a node's"},
    {"maxFailedIndexes", kOwn},
    {"manualSelector", kOwn},
    {"selector", kOwn},
    {"managedBy", kOwn},
    {"FailurePolicy", kOwn},
    {"failurePolicy", kOwn},
    {"successPolicy", kOwn},
    {"startupPolicy", kOwn},
    {"Replacement", kOwn},
    {"subdomain", kOwn},
    {"hostname", kOwn},
    {"spec.network", kOwn},
    {"ttlSeconds", "runs are kept until systole stop --purge"},
    {"cleanPodPolicy", "runs are kept until systole stop --purge"},
    {"schedulingPolicy", "kubernetes.queue says what it waits for"},
    {"coordinator", "the agents of the nodes find each other by themselves"},
    {"rdzv", "the agents of the nodes find each other by themselves"},
    {"elasticPolicy", "the agent starts ranks again by itself"},
};

// Whether it is a container that was left out entirely: a pod here has one.
bool is_container(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot != path.npos && path.substr(0, dot).ends_with(".containers");
}

std::string_view reason_of(std::string_view path) {
  if (is_container(path)) return "a pod here has one container; others: add them to what render writes";
  const auto found = std::ranges::find_if(kReasons, [&](const Reason& r) { return path.find(r.part) != path.npos; });
  return found == std::end(kReasons) ? kAdd : found->why;
}

class ManifestReader {
 public:
  ManifestReader(const ImportSource& source, Draft& draft) : source_(source), draft_(draft) {}
  void read();

 private:
  std::vector<Node> documents();
  void read_job(TakenFields& fields);
  void read_jobset(TakenFields& fields);
  void read_pytorchjob(TakenFields& fields);
  void metadata(TakenFields& fields, const std::string& at);
  std::int64_t job_spec(TakenFields& fields, const std::string& at);
  void retries(TakenFields& fields, const std::string& path, std::int64_t nodes);
  void pod_template(TakenFields& fields, const std::string& at);
  std::optional<std::int64_t> number(TakenFields& fields, const std::string& path, std::int64_t least = 0,
                                     std::int64_t most = 1'000'000'000) {
    const FlagValue value{fields.text(path), path};
    return value.text.empty() ? std::nullopt : count_of(draft_, value, least, most);
  }
  // int32 in Kubernetes; a workload has up to kMostRetries.
  std::optional<std::int64_t> often(TakenFields& fields, const std::string& path) {
    return number(fields, path, 0, std::numeric_limits<std::int32_t>::max());
  }
  void set_retries(std::int64_t retries, const std::string& path) {
    if (retries > kMostRetries) draft_.note(path, fmt::format("ranks.retries is {} at most", kMostRetries));
    draft_.set("ranks.retries", std::min(retries, kMostRetries), path);
  }
  void nodes(std::int64_t least, std::int64_t most, const std::string& from) {
    if (least >= 1 && most >= least) draft_.ask(&RequestedResources::nodes, CountRange{least, most}, from);
  }

  static constexpr std::int64_t kMostRetries = 1000;
  const ImportSource& source_;
  Draft& draft_;
};

// Removes the indentation common to all lines, as in text pasted from a page.
std::string without_margin(std::string_view text) {
  std::size_t margin = text.npos;
  const auto each_line = [&](auto&& line_is) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      line_is(rest.substr(0, end));
      rest = end == rest.npos ? "" : rest.substr(end + 1);
    }
  };
  each_line([&](std::string_view line) { margin = std::min(margin, line.find_first_not_of(" \r")); });
  if (margin == text.npos || margin == 0) return std::string(text);
  std::string all;
  each_line([&](std::string_view line) { all += std::string(line.substr(std::min(margin, line.size()))) + "\n"; });
  return all;
}

// A line '---' separates documents; within a text it is indented.
std::vector<Node> ManifestReader::documents() {
  std::vector<Node> all;
  const std::string text = without_margin(source_.text);
  std::string now;
  int lines = 0, began = 0;
  const auto end = [&] {
    // Empty lines before it preserve line numbers.
    const bool json = now.find_first_not_of(" \t\r\n") == now.find('{') && now.find('{') != now.npos;
    now.insert(0, static_cast<std::size_t>(began), '\n');
    Result<Node> read = json ? parse_json(now, source_.file) : parse_yaml(now, source_.file);
    if (json && !read.ok())  // a YAML map in braces
      if (Result<Node> yaml = parse_yaml(now, source_.file); yaml.ok()) read = std::move(yaml);
    if (!read.ok()) {
      draft_.wrong(read.error());
    } else if (read->is_map()) {
      const Node* list = read->find("items");
      if (list != nullptr && list->is_sequence()) {
        for (const Node& item : list->items()) all.push_back(item);
      } else {
        all.push_back(*std::move(read));
      }
    } else if (!read->is_null()) {
      draft_.wrong(read->wrong("an object of Kubernetes"));
    }
    now.clear();
    began = lines;
  };
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t newline = rest.find('\n');
    const std::string_view line = rest.substr(0, newline);
    rest = newline == rest.npos ? "" : rest.substr(newline + 1);
    ++lines;
    if (line == "---" || line.starts_with("--- ") || line == "---\r") {
      end();
    } else {
      now += std::string(line) + "\n";
    }
  }
  end();
  return all;
}

void ManifestReader::metadata(TakenFields& fields, const std::string& at) {
  std::string name = fields.text(at + ".name");
  if (name.empty()) name = fields.text(at + ".generateName");
  while (name.ends_with('-')) name.pop_back();
  if (!name.empty()) draft_.set("name", name, at + ".name");
  if (const std::string space = fields.text(at + ".namespace"); !space.empty() && space != "default")
    draft_.set("kubernetes.namespace", space, at + ".namespace");
  const Node* labels = fields.find(at + ".labels");
  if (labels == nullptr) return;
  for (const Node::Entry& entry : labels->entries()) {
    fields.take(at + ".labels." + entry.key);
    if (entry.key.find('/') == std::string::npos)
      draft_.set_entry("labels", entry.key, entry.value.text(), at + ".labels");
    else
      draft_.left_out(at + ".labels." + entry.key, std::string(reason_of(entry.key)));
  }
}

// Kubernetes counts for all nodes together, a workload per node.
void ManifestReader::retries(TakenFields& fields, const std::string& path, std::int64_t nodes) {
  const auto limit = often(fields, path);
  if (!limit) return;
  const std::int64_t each = (*limit + std::max<std::int64_t>(1, nodes) - 1) / std::max<std::int64_t>(1, nodes);
  if (each != RanksSpec::kRetries) set_retries(each, path);
}

void ManifestReader::pod_template(TakenFields& fields, const std::string& at) {
  if (const Node* labels = fields.find(at + ".metadata.labels"); labels != nullptr)
    for (const Node::Entry& entry : labels->entries())
      if (entry.key.find('/') == std::string::npos) fields.take(at + ".metadata.labels." + entry.key);
  read_pod(fields, at + ".spec", draft_);
}

// Returns its number of pods.
std::int64_t ManifestReader::job_spec(TakenFields& fields, const std::string& at) {
  const auto completions = number(fields, at + ".completions", 1), parallelism = number(fields, at + ".parallelism", 0);
  const std::int64_t pods = completions.value_or(parallelism.value_or(1));
  if (completions && parallelism && *completions != *parallelism)
    draft_.left_out(at + ".parallelism", "nodes of a workload run all at once");
  fields.take(at + ".completionMode");
  if (const auto longest = number(fields, at + ".activeDeadlineSeconds", 1))
    draft_.set("resources.longest", fmt::format("{}s", *longest), at + ".activeDeadlineSeconds");
  return pods;
}

void ManifestReader::read_job(TakenFields& fields) {
  metadata(fields, "metadata");
  const std::int64_t pods = job_spec(fields, "spec");
  nodes(pods, pods, "spec.completions");
  retries(fields, "spec.backoffLimit", pods);
  pod_template(fields, "spec.template");
}

void ManifestReader::read_jobset(TakenFields& fields) {
  metadata(fields, "metadata");
  const Node* jobs = fields.find("spec.replicatedJobs");
  if (jobs == nullptr || jobs->items().size() != 1) {
    draft_.wrong(error(ErrorKind::unsupported,
                       "spec.replicatedJobs: {} of them; a workload is one program on nodes that "
                       "are all alike",
                       jobs == nullptr ? 0 : jobs->items().size())
                     .hinted("leave one of them, and import the others on their own"));
    return;
  }
  const std::string job = "spec.replicatedJobs.0";
  fields.take(job + ".name");
  const std::int64_t replicas = number(fields, job + ".replicas", 1).value_or(1);
  const std::int64_t pods = job_spec(fields, job + ".template.spec");
  often(fields, job + ".template.spec.backoffLimit");  // a JobSet restarts as a whole
  nodes(replicas * pods, replicas * pods, job + ".replicas, parallelism");
  if (const auto restarts = often(fields, "spec.failurePolicy.maxRestarts"))
    if (*restarts != RanksSpec::kRetries) set_retries(*restarts, "spec.failurePolicy.maxRestarts");
  pod_template(fields, job + ".template.spec.template");
}

void ManifestReader::read_pytorchjob(TakenFields& fields) {
  metadata(fields, "metadata");
  const std::string specs = "spec.pytorchReplicaSpecs.";
  const auto pods_of = [&](const char* role) -> std::int64_t {
    if (fields.find(specs + role) == nullptr) return 0;
    fields.text(specs + role + ".restartPolicy");
    return number(fields, specs + role + ".replicas").value_or(1);
  };
  const std::int64_t masters = pods_of("Master"), workers = pods_of("Worker");
  const char* role = workers > 0 ? "Worker" : "Master";
  if (masters + workers == 0) {
    draft_.wrong(
        error(ErrorKind::invalid, "spec.pytorchReplicaSpecs: neither Master nor Worker").hinted("paste it whole"));
    return;
  }
  if (masters > 0 && workers > 0) {
    const Node *one = fields.find(specs + "Master.template"), *other = fields.find(specs + "Worker.template");
    if (one == nullptr || other == nullptr || !(*one == *other)) {
      draft_.wrong(error(ErrorKind::unsupported, "Master and Worker differ: nodes of a workload are all alike")
                       .hinted("make their templates the same"));
      return;
    }
    fields.take(specs + "Master.template");
  }
  const auto least = number(fields, "spec.elasticPolicy.minReplicas", 1),
             most = number(fields, "spec.elasticPolicy.maxReplicas", 1);
  nodes(least.value_or(masters + workers), most.value_or(masters + workers),
        least || most ? "spec.elasticPolicy" : "spec.pytorchReplicaSpecs");
  if (const auto restarts = often(fields, "spec.elasticPolicy.maxRestarts"))
    set_retries(*restarts, "spec.elasticPolicy.maxRestarts");
  if (const auto limit = often(fields, "spec.runPolicy.backoffLimit"); limit && *limit != RanksSpec::kRetries)
    set_retries(*limit, "spec.runPolicy.backoffLimit");
  if (const auto longest = number(fields, "spec.runPolicy.activeDeadlineSeconds", 1))
    draft_.set("resources.longest", fmt::format("{}s", *longest), "spec.runPolicy.activeDeadlineSeconds");
  if (const std::string ranks = fields.text("spec.nprocPerNode"); !ranks.empty() && ranks != "auto" && ranks != "gpu")
    if (const auto n = count_of(draft_, {ranks, "spec.nprocPerNode"}))
      draft_.ask(&RequestedResources::launched_per_node, *n, "spec.nprocPerNode");
  pod_template(fields, specs + role + ".template");
}

void ManifestReader::read() {
  const std::vector<Node> objects = documents();
  if (read_rendered(objects, draft_)) return;
  const Node* job = nullptr;
  for (const Node& object : objects) {
    const std::string kind = object.text_at("kind");
    constexpr std::string_view kJobs[] = {"Job", "JobSet", "PyTorchJob"};
    constexpr std::string_view kOthers[] = {"Pod",    "Deployment", "StatefulSet", "JAXJob",  "TrainJob",
                                            "MPIJob", "TFJob",      "RayJob",      "CronJob", "LeaderWorkerSet"};
    if (std::ranges::find(kOthers, kind) != std::end(kOthers)) {
      draft_.wrong(error(ErrorKind::unsupported, "kind {}: Job, JobSet and PyTorchJob are imported", kind)
                       .at(object.where())
                       .hinted("paste the line that its container runs"));
    } else if (std::ranges::find(kJobs, kind) == std::end(kJobs)) {
      draft_.left_out("kind " + kind, "render writes what a run needs besides its job");
    } else if (job != nullptr) {
      draft_.wrong(error(ErrorKind::unsupported, "two jobs; a workload is one program")
                       .at(object.where())
                       .hinted("import each on its own"));
    } else {
      job = &object;
    }
  }
  if (job == nullptr) {
    if (draft_.num_errors() == 0)
      draft_.wrong(error(ErrorKind::invalid, "no Job, JobSet or PyTorchJob is in it")
                       .at({source_.file})
                       .hinted("paste it whole"));
    return;
  }
  TakenFields fields(*job);
  for (const char* field : {"apiVersion", "kind"}) fields.take(field);
  const std::string kind = job->text_at("kind");
  if (kind == "Job") read_job(fields);
  if (kind == "JobSet") read_jobset(fields);
  if (kind == "PyTorchJob") read_pytorchjob(fields);
  for (const std::string& path : fields.rest()) draft_.left_out(path, std::string(reason_of(path)));
}

// Whether `key` occurs as a map key: plain or quoted, after spaces, '-', '{' or ','.
bool has_key(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    std::string_view before = text.substr(0, at), behind = text.substr(at + key.size());
    if (!before.empty() && !behind.empty() && (before.back() == '"' || before.back() == '\'') &&
        behind.front() == before.back()) {
      before.remove_suffix(1);
      behind.remove_prefix(1);
    }
    while (!before.empty() && (before.back() == ' ' || before.back() == '\t')) before.remove_suffix(1);
    while (behind.starts_with(' ')) behind.remove_prefix(1);
    const bool begins = before.empty() || std::string_view("\n\r{,-").find(before.back()) != std::string_view::npos;
    if (begins && behind.starts_with(':')) return true;
  }
  return false;
}

}  // namespace

bool is_manifest(std::string_view text) {
  return !text.starts_with("#!") && has_key(text, "apiVersion") && has_key(text, "kind");
}

void read_manifest(const ImportSource& source, Draft& draft) { ManifestReader(source, draft).read(); }

}  // namespace systole

#include "operate/import/manifest.h"

#include <algorithm>

#include "operate/import/flags.h"
#include "operate/import/pod.h"

namespace systole {
namespace {

struct Reason {
  std::string_view part, why;
};
// Of fields that are not taken, by what stands in their path; the first that fits counts.
constexpr Reason kReasons[] = {
    {"status", "the server writes it"},
    {"metadata.uid", "the server writes it"},
    {"resourceVersion", "the server writes it"},
    {"creationTimestamp", "the server writes it"},
    {"managedFields", "the server writes it"},
    {"annotations", "render writes its own"},
    {"app.kubernetes.io/", "render writes its own"},
    {"jobset.sigs.k8s.io/", "render writes its own"},
    {"initContainers", "the image has what is set up before, or command does it"},
    {"volume", "claims mounts persistent volume claims; others: add them to what render writes"},
    {"securityContext", "render's pods are nobody's (user 10001) and have no privileges"},
    {"hostNetwork", "render's pods have a network of their own, which policies hold for"},
    {"dnsPolicy", "render's pods have a network of their own"},
    {"tolerations", "render's pods tolerate what GPU nodes refuse; others: add them to what render writes"},
    {"google.com/tpu", "a workload says GPUs; add TPUs to what render writes"},
    {"nvidia.com/", "GPUs alone are asked for by number"},
    {"ephemeral-storage", "no key of a workload says it; add it to what render writes"},
    {"kueue.x-k8s.io/", "which queue it waits in: add it to what render writes"},
    {"suspend", "whether it waits is said when it is submitted"},
    {"FailurePolicy", "render writes its own"},
    {"failurePolicy", "render writes its own"},
    {"successPolicy", "render writes its own"},
    {"startupPolicy", "render writes its own"},
    {"Replacement", "render writes its own"},
    {"subdomain", "render writes its own"},
    {"hostname", "render writes its own"},
    {"spec.network", "render writes its own"},
    {"ttlSeconds", "runs are kept until systole stop --purge"},
    {"cleanPodPolicy", "runs are kept until systole stop --purge"},
    {"coordinator", "the agents of the nodes find each other by themselves"},
    {"rdzv", "the agents of the nodes find each other by themselves"},
    {"elasticPolicy", "the agent starts ranks again by itself"},
    {"containers", "a pod here has one container; others: add them to what render writes"},
};

std::string_view reason_of(std::string_view path) {
  const auto found = std::ranges::find_if(kReasons, [&](const Reason& r) { return path.find(r.part) != path.npos; });
  return found == std::end(kReasons) ? "no key of a workload says it; add it to what render writes" : found->why;
}

class ManifestReader {
 public:
  ManifestReader(const ImportSource& source, Draft& draft) : source_(source), draft_(draft) {}
  void read();

 private:
  std::vector<Node> documents();
  bool is_rendered(const std::vector<Node>& objects);
  void read_job(TakenFields& fields);
  void read_jobset(TakenFields& fields);
  void read_pytorchjob(TakenFields& fields);
  void metadata(TakenFields& fields, const std::string& at);
  std::int64_t job_spec(TakenFields& fields, const std::string& at);
  void retries(TakenFields& fields, const std::string& path, std::int64_t nodes);
  void pod_template(TakenFields& fields, const std::string& at);
  std::optional<std::int64_t> number(TakenFields& fields, const std::string& path, std::int64_t least = 0) {
    const FlagValue value{fields.text(path), path};
    return value.text.empty() ? std::nullopt : count_of(draft_, value, least);
  }
  void nodes(std::int64_t least, std::int64_t most, const std::string& from) {
    if (least >= 1 && most >= least) draft_.ask(&AskedResources::nodes, CountRange{least, most}, from);
  }

  const ImportSource& source_;
  Draft& draft_;
};

// A line of '---' separates; one inside of a text is indented.
std::vector<Node> ManifestReader::documents() {
  std::vector<Node> all;
  std::string now;
  int lines = 0, began = 0;
  const auto end = [&] {
    // Empty lines in front keep places true.
    Result<Node> read = parse_yaml(std::string(static_cast<std::size_t>(began), '\n') + now, source_.file);
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
  for (std::string_view rest = source_.text; !rest.empty();) {
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

std::string text_at(const Node& object, std::string_view key) {
  const Node* found = object.find(key);
  return found != nullptr && found->is_scalar() ? found->text() : "";
}

// What Systole rendered has its workload in it, and is that workload: its other fields are what render makes of it.
bool ManifestReader::is_rendered(const std::vector<Node>& objects) {
  for (const Node& object : objects) {
    const TakenFields fields(object);
    const Node* by = fields.find("metadata.labels.app.kubernetes.io/managed-by");
    const Node* text = fields.find("data.workload.yaml");
    if (text_at(object, "kind") != "ConfigMap" || by == nullptr || by->text() != "systole" || text == nullptr) continue;
    const Result<Workload> workload = read_workload(text->text(), "workload.yaml");
    if (!workload.ok()) {
      draft_.wrong(workload.error());
      return true;
    }
    draft_.begin_with(*workload, parse_yaml(text->text(), "workload.yaml").value());
    draft_.left_out("what was changed in the manifest", "its workload is in it, and is what comes back");
    return true;
  }
  return false;
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

// Of all nodes together there; a node here.
void ManifestReader::retries(TakenFields& fields, const std::string& path, std::int64_t nodes) {
  const auto limit = number(fields, path);
  if (!limit) return;
  const std::int64_t each = (*limit + std::max<std::int64_t>(1, nodes) - 1) / std::max<std::int64_t>(1, nodes);
  if (each != RanksSpec::kRetries) draft_.set("ranks.retries", std::min<std::int64_t>(each, 1000), path);
}

void ManifestReader::pod_template(TakenFields& fields, const std::string& at) {
  if (const Node* labels = fields.find(at + ".metadata.labels"); labels != nullptr)
    for (const Node::Entry& entry : labels->entries())
      if (entry.key.find('/') == std::string::npos) fields.take(at + ".metadata.labels." + entry.key);
  read_pod(fields, at + ".spec", draft_);
}

// Returns its pods.
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
  number(fields, job + ".template.spec.backoffLimit");  // a JobSet restarts as a whole
  nodes(replicas * pods, replicas * pods, job + ".replicas, parallelism");
  if (const auto restarts = number(fields, "spec.failurePolicy.maxRestarts"))
    if (*restarts != RanksSpec::kRetries)
      draft_.set("ranks.retries", std::min<std::int64_t>(*restarts, 1000), "spec.failurePolicy.maxRestarts");
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
  if (const auto restarts = number(fields, "spec.elasticPolicy.maxRestarts"))
    draft_.set("ranks.retries", std::min<std::int64_t>(*restarts, 1000), "spec.elasticPolicy.maxRestarts");
  if (const auto limit = number(fields, "spec.runPolicy.backoffLimit"); limit && *limit != RanksSpec::kRetries)
    draft_.set("ranks.retries", std::min<std::int64_t>(*limit, 1000), "spec.runPolicy.backoffLimit");
  if (const auto longest = number(fields, "spec.runPolicy.activeDeadlineSeconds", 1))
    draft_.set("resources.longest", fmt::format("{}s", *longest), "spec.runPolicy.activeDeadlineSeconds");
  if (const std::string ranks = fields.text("spec.nprocPerNode"); !ranks.empty() && ranks != "auto" && ranks != "gpu")
    if (const auto n = count_of(draft_, {ranks, "spec.nprocPerNode"}))
      draft_.ask(&AskedResources::launched_per_node, *n, "spec.nprocPerNode");
  pod_template(fields, specs + role + ".template");
}

void ManifestReader::read() {
  const std::vector<Node> objects = documents();
  if (is_rendered(objects)) return;
  const Node* job = nullptr;
  for (const Node& object : objects) {
    const std::string kind = text_at(object, "kind");
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
  const std::string kind = text_at(*job, "kind");
  if (kind == "Job") read_job(fields);
  if (kind == "JobSet") read_jobset(fields);
  if (kind == "PyTorchJob") read_pytorchjob(fields);
  for (const std::string& path : fields.rest()) draft_.left_out(path, std::string(reason_of(path)));
}

}  // namespace

bool is_manifest(std::string_view text) {
  bool version = text.starts_with("apiVersion:"), kind = text.starts_with("kind:");
  version = version || text.find("\napiVersion:") != text.npos;
  kind = kind || text.find("\nkind:") != text.npos;
  return version && kind;
}

void read_manifest(const ImportSource& source, Draft& draft) { ManifestReader(source, draft).read(); }

}  // namespace systole

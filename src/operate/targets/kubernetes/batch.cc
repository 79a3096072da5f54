#include "operate/targets/kubernetes/batch.h"

#include <cmath>

#include "operate/render/batch_task.h"
#include "operate/render/quote.h"
#include "operate/render/template.h"

namespace systole {
namespace {

constexpr const char* kFolder = "/systole/batch";
constexpr const char* kFile = "job.yaml";
constexpr std::size_t kMostCronName = 52;  // eleven characters of each Job's name are its time

constexpr const char* kFiles = R"(
apiVersion: v1
kind: ConfigMap
metadata: { name: $name, namespace: $namespace, labels: $labels, annotations: $annotations }
data: { job.yaml: $job }
)";

constexpr const char* kJob = R"(
apiVersion: batch/v1
kind: Job
metadata: $metadata
spec:
  suspend: $suspend
  completionMode: $mode
  completions: $pods
  parallelism: $pods
  backoffLimit: $retries
  backoffLimitPerIndex: $retries_each
  maxFailedIndexes: $failed
  podReplacementPolicy: Failed
  podFailurePolicy: { rules: $rules }
  template: $template
)";

// A run that is still going on at the next time goes on alone; that time is made up for when it ends, if it may start so
// late.
constexpr const char* kCronJob = R"(
apiVersion: batch/v1
kind: CronJob
metadata: $metadata
spec:
  schedule: $cron
  timeZone: $zone
  startingDeadlineSeconds: $late
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate: { metadata: { labels: $labels, annotations: $annotations }, spec: $spec }
)";

void check(const KubernetesJob& k, PodParts& parts) {
  const BatchTask& task = *k.ask.batch;
  const auto note = [&](Error e) { parts.wrong.push_back(std::move(e)); };
  if (k.kind != KubernetesSpec::Kind::job)
    note(key_error(ErrorKind::unsupported, "kubernetes.kind", "a batch runs in Jobs").hinted("take it out"));
  const auto is_path = [&](const char* key, const std::string& path) {
    if (path.starts_with('/')) return true;
    note(
        key_error(ErrorKind::invalid, key, "'{}' is no path in a pod", comment_text(path))
            .hinted(fmt::format("cluster: {{ claims: {{ /data: NAME }} }} and {}: /data/{}", key, comment_text(path))));
    return false;
  };
  for (const auto& [key, path] : read_paths(task))
    if (is_path(key, path) && !is_held(k.workload(), path))
      parts.warnings.push_back(
          fmt::format("{}: {} is in no claim or volume, so the image has to have it", key, comment_text(path)));
  if (is_path("output", task.output) && !is_held(k.workload(), task.output))
    note(key_error(ErrorKind::invalid, "output", "'{}' is in no claim or volume: it would end with its pod",
                   comment_text(task.output))
             .hinted("cluster: { claims: { /data: NAME } } and output: /data/answers.jsonl"));
  if (!task.is_shared && !k.job.alone())
    note(key_error(ErrorKind::invalid, "shards", "{} pods, and the job is of one process", k.job.nodes.most)
             .hinted("shards: auto; or resources.nodes: 1"));
  if (k.job.nodes.elastic())
    note(key_error(ErrorKind::unsupported, "resources.nodes", "{}:{}: a Job has as many pods as it says",
                   k.job.nodes.least, k.job.nodes.most)
             .hinted(fmt::format("resources.nodes: {}", k.job.nodes.most)));
  if (task.schedule && k.job.run.size() > kMostCronName)
    note(error(ErrorKind::invalid, "'{}': the name of a CronJob has at most {} characters", k.job.run, kMostCronName)
             .hinted("cluster: { name: nightly }; or --run nightly"));
}

Node job_of(const KubernetesJob& k, const PodParts& parts) {
  const bool indexed = k.ask.batch->is_shared;
  Node command;
  for (const std::string& word : batch_words(*k.ask.batch, k.job, fmt::format("{}/{}", kFolder, kFile)))
    command.push(word);
  return fill(kJob, {{"metadata", job_metadata(k, parts)},
                     {"suspend", parts.suspended ? Node(true) : Node()},
                     {"mode", indexed ? Node("Indexed") : Node()},
                     {"pods", k.job.nodes.most},
                     {"retries", indexed ? Node() : Node(k.job.retries)},
                     {"retries_each", indexed ? Node(k.job.retries) : Node()},
                     {"failed", indexed ? Node(0) : Node()},
                     {"rules", failure_rules(k, true)},
                     {"template", pod_template(k, parts, {.command = std::move(command)})}});
}

}  // namespace

PodParts batch_parts(const KubernetesJob& k) {
  PodParts parts;
  parts.set_env("HOME", "/tmp");
  for (const auto& [name, value] : k.workload().env) parts.set_env(name, kube_value(value));
  parts.mount("job", kFolder, true, Node::map({{"configMap", Node::map({{"name", k.job.run + "-job"}})}}));
  add_claims(k, parts);
  add_volumes(k, parts);
  add_devices(k, parts);
  add_host_share(k, parts);
  add_secrets(k, parts);
  add_identity(k, parts);
  add_queue(k, parts);
  add_provisioning(k, parts);
  check(k, parts);
  return parts;
}

std::vector<Node> batch_objects(const KubernetesJob& k, const PodParts& parts) {
  const BatchTask& task = *k.ask.batch;
  std::vector<Node> objects{fill(kFiles, {{"name", k.job.run + "-job"},
                                          {"namespace", k.space},
                                          {"labels", k.labels},
                                          {"annotations", k.annotations},
                                          {"job", task.file}})};
  objects.insert(objects.end(), parts.objects.begin(), parts.objects.end());
  Node job = job_of(k, parts);
  if (!task.schedule) {
    objects.push_back(std::move(job));
    return objects;
  }
  const CronSchedule& schedule = *task.schedule;
  const Node& metadata = *job.find("metadata");
  objects.push_back(fill(
      kCronJob,
      {{"metadata",
        Node::map({{"name", k.job.run}, {"namespace", k.space}, {"labels", k.labels}, {"annotations", k.annotations}})},
       {"cron", schedule.cron.plain()},
       {"zone", schedule.zone.name() == "UTC" ? "Etc/UTC" : schedule.zone.name()},
       {"late", static_cast<std::int64_t>(std::floor(schedule.start_within.count()))},
       {"labels", *metadata.find("labels")},
       {"annotations", *metadata.find("annotations")},
       {"spec", *job.find("spec")}}));
  return objects;
}

const char* batch_kind(const KubernetesJob& k) { return k.ask.batch->schedule ? "cronjob" : "job"; }

}  // namespace systole

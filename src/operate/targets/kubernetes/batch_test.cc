// Batches on Kubernetes: a Job, and with a schedule a CronJob of the same.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "operate/render/batch_task.h"
#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {
namespace {

constexpr const char* kCluster = R"(
systole: 1
name: vectors
command: [systole, batch]
image: registry.example/systole:0.1
claims: { /data: data }
folder: /data/vectors
resources: { memory: 8GiB, threads: 4 }
labels: { team: search }
)";

class KubernetesBatch : public testing::Test {
 protected:
  Result<Rendered> ask(const std::vector<std::string>& sets = {}, const char* target = "kubernetes") const {
    const Workload of = read_workload(kCluster, "job.yaml", {.sets = sets}).value();
    RenderRequest ask{.target = find_job_target_row(target), .workload = of, .facts = builtin_facts()};
    ask.workload_file = {"", std::string(64, '1')};
    ask.version = "systole";
    ask.place = "here";
    ask.batch = &task_;
    return render(ask);
  }
  std::vector<Node> objects(const std::vector<std::string>& sets = {}) const {
    const std::string text = ask(sets).value().files.at(0).text;
    std::vector<Node> objects;
    for (std::size_t at = 0; at != text.npos;) {
      const std::size_t end = text.find("\n---\n", at);
      objects.push_back(parse_yaml(text.substr(at, end == text.npos ? end : end + 1 - at), "job.yaml").value());
      EXPECT_EQ(schemas().wrong(objects.back()), std::nullopt);
      at = end == text.npos ? end : end + 5;
    }
    return objects;
  }
  std::string refused(const std::vector<std::string>& sets = {}, const char* target = "kubernetes") const {
    const Result<Rendered> result = ask(sets, target);
    return result.ok() ? "" : to_string(result.error());
  }
  static CronSchedule schedule(const std::string& yaml) {
    return read_schedule(parse_yaml(yaml, "job.yaml").value()).value();
  }
  static std::string words(const Node& pod) {
    std::vector<std::string> words;
    for (const Node& word : at(pod, "spec.containers.0.command").items()) words.push_back(word.text());
    return fmt::format("{}", fmt::join(words, " "));
  }

  BatchTask task_{
      .file = "kind: embeddings\n", .model = "/data/model", .input = "/data/a.csv", .output = "/data/v/v.jsonl"};
};

TEST_F(KubernetesBatch, is_a_job_of_one_pod) {
  const std::vector<Node> all = objects();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(at(all[0], "data").text_at("job.yaml"), task_.file);
  const Node& spec = at(all[1], "spec");
  EXPECT_EQ(all[1].text_at("kind"), "Job");
  EXPECT_EQ(spec.text_at("backoffLimit"), "10");
  EXPECT_EQ(spec.find("completionMode"), nullptr);
  const Node& pod = at(spec, "template");
  EXPECT_EQ(words(pod), "systole batch /systole/batch/job.yaml");
  EXPECT_EQ(at(pod, "spec.securityContext").text_at("runAsNonRoot"), "true");
  EXPECT_EQ(at(pod, "spec.containers.0.resources.requests").text_at("memory"), "8Gi");
  EXPECT_EQ(at(pod, "metadata.annotations").text_at("systole.label/team"), "search");
}

TEST_F(KubernetesBatch, with_shards_is_an_indexed_job_of_as_many_pods_as_nodes) {
  task_.is_shared = true;
  const std::vector<Node> all = objects({"resources.nodes=3"});
  ASSERT_EQ(all.size(), 2U) << "pods do not speak to each other: no Service, no policy, no token";
  const Node& spec = at(all[1], "spec");
  for (const auto& [key, value] : {std::pair("completionMode", "Indexed"),
                                   {"completions", "3"},
                                   {"parallelism", "3"},
                                   {"backoffLimitPerIndex", "10"}})
    EXPECT_EQ(spec.text_at(key), value);
  EXPECT_EQ(spec.find("backoffLimit"), nullptr);
}

TEST_F(KubernetesBatch, with_a_schedule_is_a_cron_job_of_the_same_job) {
  task_.is_shared = true;
  const Node job = objects({"resources.nodes=3"})[1];
  task_.schedule = schedule("{ cron: '30 2 * * mon-fri', time_zone: Europe/Berlin, start_within: 6h }");
  const Node cron = objects({"resources.nodes=3"})[1];
  const Node& spec = at(cron, "spec");
  EXPECT_EQ(cron.text_at("kind"), "CronJob");
  EXPECT_EQ(spec.text_at("schedule"), "30 2 * * 1,2,3,4,5");
  EXPECT_EQ(spec.text_at("timeZone"), "Europe/Berlin");
  EXPECT_EQ(spec.text_at("startingDeadlineSeconds"), "21600");
  EXPECT_EQ(spec.text_at("concurrencyPolicy"), "Forbid");
  const Node& pod = at(spec, "jobTemplate.spec.template");
  EXPECT_EQ(words(pod), "systole batch /systole/batch/job.yaml --due");
  EXPECT_EQ(with(at(spec, "jobTemplate.spec"), "template.spec.containers.0.command", 0),
            with(at(job, "spec"), "template.spec.containers.0.command", 0));
  EXPECT_EQ(at(spec, "jobTemplate.metadata.labels"), at(job, "metadata.labels"));
  const Rendered rendered = ask({"resources.nodes=3"}).value();
  for (const auto& [what, line] : rendered.commands) {
    if (what == "stop") { EXPECT_EQ(line, "kubectl delete cronjob,configmap -l systole/run=vectors"); }
  }
  task_.schedule = schedule("'@daily'");
  EXPECT_EQ(at(objects()[1], "spec").text_at("timeZone"), "Etc/UTC");
}

TEST_F(KubernetesBatch, has_the_devices_and_the_queue_of_its_cluster) {
  const Node pod = at(objects({"resources={accelerators: 'g2-standard-12:1'}"})[1], "spec.template");
  EXPECT_EQ(words(pod), "systole batch /systole/batch/job.yaml --device gpu");
  EXPECT_EQ(at(pod, "spec.containers.0.resources.limits").text_at("nvidia.com/gpu"), "1");
  task_.schedule = schedule("'@daily'");
  const Node cron = objects({"kubernetes.queue=team"})[1];
  EXPECT_EQ(at(cron, "spec.jobTemplate.metadata.labels").text_at("kueue.x-k8s.io/queue-name"), "team");
  EXPECT_EQ(at(cron, "spec.jobTemplate.spec").text_at("suspend"), "true");
}

TEST_F(KubernetesBatch, needs_what_a_pod_needs) {
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  EXPECT_PRED2(says, refused({"image="}), "image: a pod needs one");
  EXPECT_PRED2(says, refused({"resources.nodes=2"}), "shards: 2 pods, and the job is of one process");
  EXPECT_PRED2(says, refused({"kubernetes.kind=jobset"}), "kubernetes.kind: a batch runs in Jobs");
  EXPECT_PRED2(says, refused({}, "docker"), "docker runs no job of `systole batch`");
  task_.model = "model";
  EXPECT_PRED2(says, refused(), "model: 'model' is no path in a pod");
  task_.model = "/models/m";
  EXPECT_PRED2(says, ask().value().warnings.at(0), "model: /models/m is in no claim or volume");
  task_.output = "/tmp/v.jsonl";
  EXPECT_PRED2(says, refused(), "output: '/tmp/v.jsonl' is in no claim or volume: it would end with its pod");
}

}  // namespace
}  // namespace systole

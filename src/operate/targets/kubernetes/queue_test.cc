// Queues, requests for nodes, pod identities and access to metrics, checked against the official schemas.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "operate/render/testing/hostile.h"
#include "operate/targets/kubernetes/testing/kubernetes_around.h"
#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {
namespace {

std::vector<Node> documents(const std::string& text) {
  std::vector<Node> objects;
  for (std::size_t at = 0; at != text.npos;) {
    const std::size_t end = text.find("\n---\n", at);
    objects.push_back(parse_yaml(text.substr(at, end == text.npos ? end : end + 1 - at), "queues.yml").value());
    at = end == text.npos ? end : end + 5;
  }
  return objects;
}

const std::vector<std::string> kQueue = {"kubernetes.queue=research",      "kubernetes.priority=high",
                                         "kubernetes.priority_value=1000", "kubernetes.topology=required:subblock",
                                         "kubernetes.queue_nodes=4",       "kubernetes.cohort=all",
                                         "kubernetes.queued=true",         "resources.longest=2d"};

TEST(RenderQueue, a_job_waits_in_its_queue_and_is_placed_as_asked) {
  const Rendered made = rendered(workload("ddp.yaml", program_on("a3-megagpu-8g:2", kQueue))).value();
  const std::vector<Node> objects = documents(made.files[0].text);
  expect_official(objects);
  const Node& job = of_kind(objects, "Job");
  EXPECT_EQ(at(job, "spec.suspend").text(), "true");
  EXPECT_EQ(at(job, "metadata.labels").find("kueue.x-k8s.io/queue-name")->text(), "research");
  EXPECT_EQ(at(job, "metadata.labels").find("kueue.x-k8s.io/priority-class")->text(), "high");
  const Node& pods = at(job, "spec.template.metadata.annotations");
  EXPECT_EQ(pods.find("kueue.x-k8s.io/podset-required-topology")->text(), "cloud.google.com/gce-topology-subblock");
  EXPECT_EQ(at(job, "metadata.annotations").find("provreq.kueue.x-k8s.io/maxRunDurationSeconds")->text(), "172800");
  EXPECT_EQ(pods.find("autoscaling.x-k8s.io/consume-provisioning-request"), nullptr) << "Kueue says which";
  for (const Node& object : objects) EXPECT_NE(object.find("kind")->text(), "ProvisioningRequest");
}

TEST(RenderQueue, the_queue_itself_is_a_file_of_its_own_for_who_keeps_the_cluster) {
  const Rendered made = rendered(workload("ddp.yaml", program_on("a3-megagpu-8g:2", kQueue))).value();
  ASSERT_EQ(made.files.size(), 2U);
  EXPECT_EQ(made.files[1].path, "queues.yml");
  EXPECT_EQ(std::map(made.commands.begin(), made.commands.end()).at("queue"),
            "kubectl apply --server-side -f here/queues.yml # once, by who keeps the cluster");
  const std::vector<Node> objects = documents(made.files[1].text);
  expect_official(objects);
  std::set<std::string> kinds;
  for (const Node& object : objects) {
    kinds.insert(object.find("kind")->text());
    EXPECT_EQ(at(object, "metadata.labels").find("systole/run"), nullptr) << "it stays when the run is purged";
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"Topology", "ResourceFlavor", "ClusterQueue", "LocalQueue",
                                          "WorkloadPriorityClass", "AdmissionCheck", "ProvisioningRequestConfig"}));
  const Node& queue = of_kind(objects, "ClusterQueue");
  const std::vector<Node> beside = documents(made.files[0].text);
  const Node& job = of_kind(beside, "Job");
  // Kueue admits no pod that requests a resource without a quota.
  const Node& group = at(queue, "spec.resourceGroups.0");
  std::set<std::string> covered;
  for (const Node& name : at(group, "coveredResources").items()) covered.insert(name.text());
  for (const Node::Entry& entry : at(container_of(job), "resources.requests").entries())
    EXPECT_TRUE(covered.contains(entry.key)) << entry.key;
  for (const Node& one : at(group, "flavors.0.resources").items()) {
    const bool gpus = one.find("name")->text() == "nvidia.com/gpu";
    EXPECT_TRUE(!gpus || one.find("nominalQuota")->text() == "32");
  }
  EXPECT_EQ(at(group, "flavors.0.name").text(), at(of_kind(objects, "ResourceFlavor"), "metadata.name").text());
  EXPECT_EQ(at(of_kind(objects, "ResourceFlavor"), "spec.topologyName").text(),
            at(of_kind(objects, "Topology"), "metadata.name").text());
  EXPECT_EQ(at(queue, "spec.admissionChecksStrategy.admissionChecks.0.name").text(),
            at(of_kind(objects, "AdmissionCheck"), "metadata.name").text());
  EXPECT_EQ(at(of_kind(objects, "AdmissionCheck"), "spec.parameters.name").text(),
            at(of_kind(objects, "ProvisioningRequestConfig"), "metadata.name").text());
  EXPECT_EQ(at(of_kind(objects, "LocalQueue"), "spec.clusterQueue").text(), at(queue, "metadata.name").text());
  std::vector<std::string> unasked = program_on("a3-megagpu-8g:2", {"kubernetes.queue=research"});
  EXPECT_EQ(rendered(workload("ddp.yaml", unasked)).value().files.size(), 1U) << "only when it is asked for";
}

TEST(RenderQueue, the_schema_finds_what_is_wrong) {
  const Rendered made = rendered(workload("ddp.yaml", program_on("a3-megagpu-8g:2", kQueue))).value();
  const std::vector<Node> objects = documents(made.files[1].text);
  const std::vector<std::tuple<const char*, const char*, Node>> mutants = {
      {"ClusterQueue", "spec.cohort", "all"},  // its name in v1beta1
      {"ClusterQueue", "spec.preemption.withinClusterQueue", "Lower"},
      {"ClusterQueue", "spec.resourceGroups.0.flavors.0.resources.0.nominalQuota", "4 GB"},
      {"ClusterQueue", "spec.resourceGroups.0.flavors", Node()},
      {"ClusterQueue", "apiVersion", "kueue.x-k8s.io/v1"},
      {"LocalQueue", "spec.clusterqueue", "x"},
      {"Topology", "spec.levels", Node()},
      {"Topology", "spec.levels.0.nodeLabels", "x"},
      {"ResourceFlavor", "spec.topology", "x"},
      {"ResourceFlavor", "spec.tolerations.0.effects", "NoSchedule"},
      {"WorkloadPriorityClass", "value", "high"},
      {"WorkloadPriorityClass", "value", Node()},
      {"AdmissionCheck", "spec.controllerName", Node()},
      {"AdmissionCheck", "spec.parameters.kind", 7},
      {"ProvisioningRequestConfig", "spec.provisioningClassName", Node()},
      {"ProvisioningRequestConfig", "spec.managedResources", "gpu"}};
  for (const auto& [kind, path, value] : mutants)
    EXPECT_TRUE(schemas().wrong(with(of_kind(objects, kind), path, value)).has_value()) << kind << " " << path;
}

TEST(RenderQueue, without_a_queue_a_request_stands_beside_the_job) {
  const std::vector<std::string> sets = program_on(
      "a3-megagpu-8g:2", {"kubernetes.queued=true", "resources.longest=12h", "resources.provisioning=flex-start"});
  const std::vector<Node> objects = objects_of(workload("ddp.yaml", sets));
  expect_official(objects);
  const Node& request = of_kind(objects, "ProvisioningRequest");
  EXPECT_EQ(at(request, "spec.parameters.maxRunDurationSeconds").text(), "43200");
  EXPECT_EQ(at(request, "spec.podSets.0.count").text(), "2");
  const Node& pods = of_kind(objects, "PodTemplate");
  EXPECT_EQ(at(request, "spec.podSets.0.podTemplateRef.name").text(), at(pods, "metadata.name").text());
  const Node& job = of_kind(objects, "Job");
  EXPECT_EQ(at(pods, "template.spec.containers.0.resources"), at(container_of(job), "resources"));
  EXPECT_EQ(at(pods, "template.spec.nodeSelector"), at(job, "spec.template.spec.nodeSelector"));
  EXPECT_EQ(
      at(job, "spec.template.metadata.annotations").find("autoscaling.x-k8s.io/consume-provisioning-request")->text(),
      at(request, "metadata.name").text());
  EXPECT_TRUE(schemas().wrong(with(request, "spec.podSets.0.count", 0)).has_value());
  EXPECT_TRUE(schemas().wrong(with(request, "spec.parameters.maxRunDurationSeconds", 43200)).has_value());
  EXPECT_TRUE(schemas().wrong(with(request, "spec.podSets", Node())).has_value());
  EXPECT_TRUE(schemas().wrong(with(pods, "template.spec.container", Node::sequence())).has_value());
}

TEST(RenderQueue, refuses_what_no_queue_or_request_can_do) {
  const auto refuses = [](std::vector<std::string> more, const std::string& part) {
    const std::string said = refusals("ddp.yaml", program_on("a3-megagpu-8g:2", std::move(more)));
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  refuses({"kubernetes.priority=high"}, "it is of a queue, and there is none");
  refuses({"kubernetes.cohort=all"}, "it is of a queue, and there is none");
  refuses({"kubernetes.queued=true"}, "kubernetes.queued: for how long?");
  refuses({"kubernetes.queued=true", "resources.longest=8d"}, "7 days at most");
  refuses({"kubernetes.queued=true", "resources.longest=1d", "resources.provisioning=spot", "ranks.notice=5s"},
          "spot and reserved nodes are not waited for so");
  refuses({"kubernetes.metrics_port=7000"}, "agents meet at 7000");
}

TEST(RenderIdentity, an_account_is_made_and_bound_or_the_users_is_told_whom_it_speaks_for) {
  const std::string google = "kubernetes.gcp_service_account=trainer@my-project.iam.gserviceaccount.com";
  const Rendered own = rendered(workload("ddp.yaml", program_on("", {google}))).value();
  const std::vector<Node> objects = documents(own.files[0].text);
  expect_official(objects);
  const Node& account = of_kind(objects, "ServiceAccount");
  EXPECT_EQ(at(account, "metadata.annotations").find("iam.gke.io/gcp-service-account")->text(),
            "trainer@my-project.iam.gserviceaccount.com");
  const Node& pod = at(of_kind(objects, "Job"), "spec.template.spec");
  EXPECT_EQ(pod.find("serviceAccountName")->text(), at(account, "metadata.name").text());
  EXPECT_EQ(pod.find("automountServiceAccountToken")->text(), "false");
  std::map<std::string, std::string> commands(own.commands.begin(), own.commands.end());
  EXPECT_EQ(commands.at("identity"),
            "gcloud iam service-accounts add-iam-policy-binding trainer@my-project.iam.gserviceaccount.com "
            "--project=my-project --role=roles/iam.workloadIdentityUser "
            "--member=\"serviceAccount:${CLUSTER_PROJECT:?of the cluster, as in my-lab-7}.svc.id.goog[default/ddp]\"")
      << "the pool is of the cluster's project, which nobody said: the line refuses until somebody does";
  const Rendered users =
      rendered(workload("ddp.yaml", program_on("", {google, "kubernetes.service_account=mine"}))).value();
  for (const Node& object : documents(users.files[0].text)) EXPECT_NE(object.find("kind")->text(), "ServiceAccount");
  EXPECT_EQ(std::map(users.commands.begin(), users.commands.end()).at("account"),
            "kubectl -n default annotate serviceaccount mine "
            "iam.gke.io/gcp-service-account=trainer@my-project.iam.gserviceaccount.com");
}

TEST(RenderIdentity, metrics_are_collected_where_somebody_serves_them) {
  const std::vector<Node> objects =
      objects_of(workload("ddp.yaml", program_on("", {"kubernetes.metrics_port=9090", "resources.nodes=2"})));
  expect_official(objects);
  const Node& monitoring = of_kind(objects, "PodMonitoring");
  EXPECT_EQ(at(monitoring, "spec.endpoints.0.port").text(), "metrics");
  EXPECT_TRUE(schemas().wrong(with(monitoring, "spec.endpoints.0.intervall", "15s")).has_value());
  const Node& policy = of_kind(objects, "NetworkPolicy");
  EXPECT_EQ(at(policy, "spec.ingress.1.ports.0.port").text(), "9090") << "or the policy keeps the collector out";
  EXPECT_EQ(at(monitoring, "spec.selector.matchLabels").entries().size(), 1U) << "each of a program's nodes may serve";
  for (const Node& object : objects_of(workload("ddp.yaml", program_on(""))))
    EXPECT_NE(object.find("kind")->text(), "PodMonitoring");
}

TEST(RenderIdentity, a_model_serves_its_metrics_itself) {
  const std::vector<std::string> port = {"mesh={data: 4}", "resources.nodes=4", "kubernetes.metrics_port=9090"};
  const Rendered made = rendered(workload("linear.yaml", program_on("", port))).value();
  const std::vector<Node> objects = documents(made.files[0].text);
  expect_official(objects);
  EXPECT_TRUE(has(made.files[0].text, " --metrics 0.0.0.0:9090")) << made.files[0].text;
  const Node& pods = at(of_kind(objects, "PodMonitoring"), "spec.selector.matchLabels");
  EXPECT_EQ(pods.find("batch.kubernetes.io/job-completion-index")->text(), "0") << "rank 0's pod";
  EXPECT_FALSE(has(
      rendered(workload("linear.yaml", program_on("", {"mesh={data: 4}", "resources.nodes=4"}))).value().files[0].text,
      "--metrics"));
}

}  // namespace
}  // namespace systole

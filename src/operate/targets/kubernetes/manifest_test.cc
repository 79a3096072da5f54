// Manifests for Kubernetes, checked against the official schemas, rules beyond the schemas, and hostile text.
#include <gtest/gtest.h>

#include "operate/render/testing/hostile.h"
#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {
namespace {

const std::vector<std::string> kModel = {"mesh={data: 4}",
                                         "resources={nodes: 4, threads: 2, memory: 4GiB}",
                                         "image=registry.example/systole:0.1",
                                         "claims={/runs: runs}",
                                         "folder=/runs",
                                         "kubernetes.selector={disk: fast}"};
const std::vector<std::string> kProgram = {"resources={nodes: 2, gpus_per_node: 8, threads: 4, memory: 512GiB}",
                                           "image=registry.example/ddp@sha256:" + std::string(64, 'a'),
                                           "claims={/runs: runs, /data: corpus}",
                                           "folder=/runs",
                                           "kubernetes.namespace=research",
                                           "kubernetes.service_account=trainer"};

TEST(RenderKubernetes, every_object_is_as_its_official_schema_says) {
  for (const Workload& of : {workload("linear.yaml", kModel), workload("ddp.yaml", kProgram)}) {
    const std::vector<Node> objects = objects_of(of);
    EXPECT_EQ(objects.size(), 4u);
    for (const Node& object : objects) EXPECT_EQ(schemas().wrong(object).value_or(""), "") << to_yaml(object);
  }
  std::vector<std::string> alone = kModel;
  alone[0] = "mesh={data: 1}";
  alone[1] = "resources={threads: 2, memory: 4GiB}";
  EXPECT_EQ(objects_of(workload("linear.yaml", alone)).size(), 2u) << "one node meets nobody";
}

TEST(RenderKubernetes, the_schema_finds_what_is_wrong) {
  const std::vector<Node> objects = objects_of(workload("ddp.yaml", kProgram));
  const Node& job = of_kind(objects, "Job");
  const Node& service = of_kind(objects, "Service");
  const Node& policy = of_kind(objects, "NetworkPolicy");
  const Node& files = of_kind(objects, "ConfigMap");
  const std::string pod = "spec.template.spec.", container = pod + "containers.0.";
  const std::vector<std::tuple<const char*, const Node*, std::string, Node>> mutants = {
      {"unknown field", &job, "spec.completionsMode", "Indexed"},
      {"unknown field", &job, pod + "tolerationz", Node::sequence()},
      {"unknown field", &service, "spec.clusterIp", "None"},
      {"unknown field", &policy, "spec.ingres", Node::sequence()},
      {"unknown field", &files, "datas", Node::map()},
      {"wrong type", &job, "spec.completions", "2"},
      {"wrong type", &job, pod + "automountServiceAccountToken", "false"},
      {"wrong type", &job, container + "command", "sh start.sh"},
      {"wrong type", &service, "spec.publishNotReadyAddresses", "true"},
      {"wrong type", &policy, "spec.policyTypes", "Ingress"},
      {"wrong type", &files, "data.start.sh", 7},
      {"missing", &job, pod + "containers", Node()},
      {"missing", &job, container + "name", Node()},
      {"missing", &job, "metadata", Node()},
      {"wrong quantity", &job, container + "resources.limits.memory", "4 GB"},
      {"wrong version", &job, "apiVersion", "batch/v2"},
      {"wrong version", &files, "kind", "Configmap"}};
  for (const auto& [what, object, path, value] : mutants) {
    if (path == "data.start.sh") continue;  // a key with a dot: checked below
    EXPECT_TRUE(schemas().wrong(with(*object, path, value)).has_value()) << what << " " << path;
  }
  Node data = at(files, "data");
  data.set("start.sh", 7);
  EXPECT_TRUE(schemas().wrong(with(files, "data", data)).has_value());
}

// Rules that no schema has, and whose violation shows only hours later.
TEST(RenderKubernetes, names_selectors_and_devices_fit_each_other) {
  for (const Workload& of : {workload("linear.yaml", kModel), workload("ddp.yaml", kProgram)}) {
    const std::vector<Node> objects = objects_of(of);
    const Node& job = of_kind(objects, "Job");
    const Node& service = of_kind(objects, "Service");
    const std::string name = at(job, "metadata.name").text();
    EXPECT_EQ(at(service, "spec.selector").find("batch.kubernetes.io/job-name")->text(), name) << "the job's own pods";
    EXPECT_EQ(at(job, "spec.template.spec.subdomain").text(), at(service, "metadata.name").text())
        << "or no pod has a name";
    EXPECT_EQ(at(job, "spec.completions").text(), at(job, "spec.parallelism").text()) << "a gang";
    EXPECT_EQ(at(job, "spec.template.spec.restartPolicy").text(), "Never") << "podFailurePolicy needs it";
    const Node& resources = at(job, "spec.template.spec.containers.0.resources");
    const Node* devices = at(resources, "limits").find("nvidia.com/gpu");
    if (devices != nullptr) {
      EXPECT_EQ(*devices, *at(resources, "requests").find("nvidia.com/gpu"));
      EXPECT_EQ(at(job, "spec.template.spec.tolerations.0.key").text(), "nvidia.com/gpu") << "or its nodes refuse it";
    }
    EXPECT_GT(std::stoi(at(job, "spec.template.spec.terminationGracePeriodSeconds").text()), 30) << "time to save";
    for (const Node& object : objects) {
      EXPECT_EQ(at(object, "metadata.labels").find("systole/run")->text(), name) << "found again by its label";
      EXPECT_EQ(at(object, "metadata.namespace").text(), at(job, "metadata.namespace").text());
    }
    const Node &mounts = at(job, "spec.template.spec.containers.0.volumeMounts"),
               &volumes = at(job, "spec.template.spec.volumes");
    ASSERT_EQ(mounts.items().size(), volumes.items().size());
    for (std::size_t i = 0; i < mounts.items().size(); ++i)
      EXPECT_EQ(at(mounts.items()[i], "name"), at(volumes.items()[i], "name"));
  }
}

TEST(RenderKubernetes, no_text_of_a_users_becomes_structure) {
  const std::vector<Node> plain = objects_of(workload("ddp.yaml", kProgram));
  for (const std::string& text : hostile_texts()) {
    Workload hostile = workload("ddp.yaml", kProgram);
    hostile.command = {"python3", text};
    hostile.env["X"] = text;
    hostile.labels["note"] = text;
    const std::vector<Node> objects = objects_of(hostile);
    ASSERT_EQ(objects.size(), plain.size()) << text;
    for (std::size_t o = 0; o < objects.size(); ++o) {
      EXPECT_EQ(schemas().wrong(objects[o]).value_or(""), "") << text;
      EXPECT_EQ(at(objects[o], "metadata").find("name")->text(), at(plain[o], "metadata").find("name")->text());
    }
    const Node& job = of_kind(objects, "Job");
    EXPECT_EQ(at(job, "metadata.annotations").find("systole.label/note")->text(), text);
    EXPECT_EQ(at(job, "spec.template.spec.containers"), at(of_kind(plain, "Job"), "spec.template.spec.containers"));
    // The workload read from the manifest equals the original.
    const std::string carried = at(of_kind(objects, "ConfigMap"), "data").find("workload.yaml")->text();
    EXPECT_EQ(read_workload(carried, "carried").value().command.back(), text);
  }
}

TEST(RenderKubernetes, refuses_what_would_fail_hours_later_all_at_once) {
  EXPECT_EQ(
      refusals("linear.yaml", {}),
      "image: a pod needs one, with systole in it | image: REGISTRY/NAME@sha256:DIGEST\n"
      "folder: 'runs' is in no claim: checkpoints would end with their pod | claims: { /runs: NAME }, folder: /runs\n"
      "resources.threads: a pod says how many processors it needs | resources: { threads: 8 }: of each rank; or "
      "--plan, "
      "one made for such a machine\n"
      "resources.memory: a pod says how much memory it needs | resources: { memory: 16GiB }: of all ranks of a node; "
      "or "
      "--plan, one made for such a machine\n");
  const auto refuses = [](const std::string& set, const std::string& part) {
    std::vector<std::string> sets = kProgram;
    sets.push_back(set);
    const std::string said = refusals("ddp.yaml", sets);
    EXPECT_NE(said.find(part), std::string::npos) << set << ": " << said;
  };
  refuses("image=a/b:latest", "is another image each day");
  refuses("image=a/b", "has neither digest nor tag");
  refuses("resources.nodes=1:4", "an Indexed Job has as many pods as it says");
  refuses("claims={/data: 'No Name'}", "claims: 'No Name' is no name of a claim");
  refuses("claims={/systole/files: runs}", "is where the files of the run are");
  refuses("kubernetes.selector={'a b': c}", "is no label");
  refuses("labels={'a/b': c}", "cannot be the name of an annotation");
  refuses("slurm.array=0:3", "a Job here is one run");
}

}  // namespace
}  // namespace systole

// Kinds of objects besides Job, checked against official schemas and what their operators expect; and what start.sh
// starts without an agent.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "ground/process/capture.h"
#include "operate/render/quote.h"
#include "operate/render/testing/hostile.h"
#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {
namespace {

const std::string kImage = "image=registry.example/train:1";
const std::vector<std::string> kJobSet = {kImage, "name=job", "resources.accelerators=v5p-32:2"};
const std::vector<std::string> kPyTorchJob = {kImage, "name=job", "resources.accelerators=a2-highgpu-8g:2",
                                              "kubernetes.kind=pytorchjob"};
const std::vector<std::string> kElastic = {
    kImage, "name=job", "resources={accelerators: 'a2-highgpu-8g:4', nodes: '1:4'}", "kubernetes.kind=pytorchjob"};
const std::vector<std::string> kJaxJob = {kImage, "name=job", "resources.accelerators=h100:16",
                                          "kubernetes.kind=jaxjob"};
const std::vector<std::string> kTrainJob = {kImage, "name=job", "resources.accelerators=h100:16",
                                            "kubernetes.kind=trainjob"};

std::vector<Node> made(const std::vector<std::string>& sets) { return objects_of(workload("ddp.yaml", sets)); }

TEST(RenderKinds, are_as_their_official_schemas_say) {
  for (const auto& sets : {kJobSet, kPyTorchJob, kElastic, kJaxJob, kTrainJob})
    for (const Node& object : made(sets)) EXPECT_EQ(schemas().wrong(object).value_or(""), "") << to_yaml(object);
}

TEST(RenderKinds, their_schemas_find_what_is_wrong) {
  const std::string set_job = "spec.replicatedJobs.0.template.spec.", set_pod = set_job + "template.spec.";
  const std::string torch_pod = "spec.pytorchReplicaSpecs.Worker.template.spec.";
  const std::string runtime_job = "spec.template.spec.replicatedJobs.0.";
  const std::vector<std::tuple<std::vector<std::string>, const char*, const char*, std::string, Node>> mutants = {
      {kJobSet, "JobSet", "unknown field", "spec.replicatedJob", Node::sequence()},
      {kJobSet, "JobSet", "unknown field", set_pod + "nodeSelectors", Node::map()},
      {kJobSet, "JobSet", "wrong type", "spec.replicatedJobs.0.replicas", "2"},
      {kJobSet, "JobSet", "missing", "spec.replicatedJobs.0.name", Node()},
      {kJobSet, "JobSet", "missing", "spec.failurePolicy.rules.0.name", Node()},
      {kJobSet, "JobSet", "wrong enum", "spec.failurePolicy.restartStrategy", "BlockRecreate"},
      {kJobSet, "JobSet", "wrong enum", "spec.failurePolicy.rules.0.action", "Fail"},
      {kElastic, "PyTorchJob", "unknown field", "spec.elasticPolicy.rdzvBackends", "c10d"},
      {kElastic, "PyTorchJob", "wrong type", "spec.nprocPerNode", 8},
      {kElastic, "PyTorchJob", "wrong type", "spec.elasticPolicy.maxReplicas", "4"},
      {kElastic, "PyTorchJob", "missing", "spec.pytorchReplicaSpecs", Node()},
      {kElastic, "PyTorchJob", "missing", torch_pod + "containers", Node()},
      {kElastic, "PyTorchJob", "wrong version", "apiVersion", "kubeflow.org/v2"},
      {kJaxJob, "JAXJob", "unknown field", "spec.nprocPerNode", "8"},
      {kJaxJob, "JAXJob", "wrong type", "spec.jaxReplicaSpecs.Worker.replicas", "2"},
      {kJaxJob, "JAXJob", "missing", "spec.jaxReplicaSpecs", Node()},
      {kTrainJob, "TrainJob", "unknown field", "spec.trainer.numProcsPerNode", 8},
      {kTrainJob, "TrainJob", "wrong type", "spec.trainer.numNodes", "2"},
      {kTrainJob, "TrainJob", "missing", "spec.runtimeRef.name", Node()},
      {kTrainJob, "TrainingRuntime", "unknown field", "spec.mlPolicy.pytorch", Node::map()},
      {kTrainJob, "TrainingRuntime", "missing", runtime_job + "name", Node()},
      {kTrainJob, "TrainingRuntime", "wrong type", "spec.mlPolicy.numNodes", "2"}};
  for (const auto& [sets, kind, what, path, value] : mutants) {
    const std::vector<Node> objects = made(sets);
    EXPECT_TRUE(schemas().wrong(with(of_kind(objects, kind), path, value)).has_value())
        << kind << ": " << what << " " << path;
  }
}

TEST(RenderKinds, a_jobset_is_a_job_a_slice) {
  const std::vector<Node> objects = made(kJobSet);
  const Node& set = of_kind(objects, "JobSet");
  EXPECT_EQ(at(set, "spec.replicatedJobs.0.replicas").text(), "2");
  EXPECT_EQ(at(set, "spec.replicatedJobs.0.template.spec.completions").text(), "4");
  EXPECT_EQ(at(set, "spec.network.subdomain").text(), "job");
  EXPECT_EQ(at(set, "spec.coordinator.replicatedJob").text(), "slice");
  EXPECT_EQ(at(set, "metadata.annotations").find("alpha.jobset.sigs.k8s.io/exclusive-topology")->text(),
            "cloud.google.com/gke-nodepool")
      << "a slice is a node pool";
  EXPECT_EQ(at(set, "spec.failurePolicy.rules.0.action").text(), "FailJobSet") << "what no retry changes";
  EXPECT_EQ(at(set, "spec.failurePolicy.maxRestarts").text(), "10");
  std::string names;
  for (const Node& one : at(set, "spec.replicatedJobs.0.template.spec.template.spec.containers.0.env").items())
    names += one.find("name")->text() + " ";
  EXPECT_EQ(names, "HOME POD_IP MEGASCALE_NUM_SLICES MEGASCALE_SLICE_ID MEGASCALE_COORDINATOR_ADDRESS ");
  for (const Node& object : objects) EXPECT_NE(object.find("kind")->text(), "Service") << "JobSet makes its own";
  // One slice needs no coordinator, so a name of that length is allowed.
  const std::vector<Node> alone = made({kImage, "name=" + std::string(40, 'x'), "resources.accelerators=v5e:4x4"});
  EXPECT_EQ(of_kind(alone, "JobSet").find("spec")->find("coordinator"), nullptr);
}

TEST(RenderKinds, kubeflow_finds_what_its_operators_look_for) {
  const std::vector<Node> plain = made(kPyTorchJob);
  const Node& torch = of_kind(plain, "PyTorchJob");
  EXPECT_EQ(at(torch, "spec.pytorchReplicaSpecs.Master.replicas").text(), "1");
  EXPECT_EQ(at(torch, "spec.pytorchReplicaSpecs.Worker.replicas").text(), "1");
  EXPECT_EQ(at(torch, "spec.pytorchReplicaSpecs.Worker.restartPolicy").text(), "OnFailure");
  EXPECT_EQ(at(torch, "spec.pytorchReplicaSpecs.Worker.template.spec.containers.0.name").text(), "pytorch");
  EXPECT_EQ(at(torch, "spec.nprocPerNode").kind(), NodeKind::string);
  EXPECT_EQ(torch.find("spec")->find("elasticPolicy"), nullptr);
  const std::vector<Node> stretching = made(kElastic);
  const Node& elastic = of_kind(stretching, "PyTorchJob");
  EXPECT_EQ(to_json(at(elastic, "spec.elasticPolicy")),
            R"({"rdzvBackend":"c10d","minReplicas":1,"maxReplicas":4,"maxRestarts":10})");
  EXPECT_EQ(at(elastic, "spec.pytorchReplicaSpecs").find("Master"), nullptr) << "any worker may be missing";
  const std::vector<Node> jax = made(kJaxJob);
  EXPECT_EQ(at(of_kind(jax, "JAXJob"), "spec.jaxReplicaSpecs.Worker.template.spec.containers.0.name").text(), "jax");
  const std::vector<Node> train = made(kTrainJob);
  const Node& runtime = of_kind(train, "TrainingRuntime");
  const Node& job = of_kind(train, "TrainJob");
  EXPECT_EQ(at(job, "spec.runtimeRef.name"), at(runtime, "metadata.name"));
  EXPECT_EQ(to_json(at(runtime, "spec.mlPolicy")), R"({"numNodes":2,"torch":{}})");
  const Node& replicated = at(runtime, "spec.template.spec.replicatedJobs.0");
  EXPECT_EQ(at(replicated, "template.metadata.labels").find("trainer.kubeflow.org/trainjob-ancestor-step")->text(),
            "trainer");
  EXPECT_EQ(at(replicated, "template.spec.template.spec.containers.0.name").text(), "node");
}

TEST(RenderKinds, refuse_what_they_cannot_start) {
  const auto refuses = [](std::vector<std::string> sets, std::vector<std::string> more, const std::string& part) {
    sets.insert(sets.end(), more.begin(), more.end());
    const std::string said = refusals("ddp.yaml", sets);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  refuses(kTrainJob, {"resources.nodes=1:2"},
          "a TrainJob has no elastic policy | resources.nodes: 2; kubernetes.kind: "
          "pytorchjob has one");
  refuses(kJaxJob, {"resources.nodes=1:2"}, "a JAXJob has as many pods as it says");
  refuses(kJaxJob, {"kubernetes.launcher=torchrun"}, "torchrun starts no program of JAX");
  refuses(kPyTorchJob, {"kubernetes.launcher=systole"}, "a pytorchjob starts ranks by its operator");
  refuses(kTrainJob, {"ranks.tls=true"}, "ranks.tls: here torchrun starts the ranks");
  refuses(kJaxJob, {"ranks.tls=true"}, "ranks.tls: here the cluster starts the ranks");
  refuses(kElastic, {"kubernetes.launcher=program"}, "a program that is started once stays as many");
  refuses(kJobSet, {"resources.nodes=2:8"}, "a JobSet has as many pods as it says");
  refuses({kImage, "resources.accelerators=v5e:4x4"}, {"kubernetes.kind=jaxjob"}, "does not tell the hosts of v5e:4x4");
  refuses({kImage, "resources.accelerators=h100:8", "resources.ranks_per_node=8"}, {"kubernetes.launcher=program"},
          "kubernetes.launcher: program starts one");
  const std::string model = refusals("linear.yaml", {kImage, "resources={threads: 1, memory: 1GiB}", "claims={/r: r}",
                                                     "folder=/r", "kubernetes.kind=pytorchjob"});
  EXPECT_NE(model.find("a model is started by systole, in a Job or JobSet"), std::string::npos) << model;
}

// Runs start.sh with stand-ins of the machine's programs, in a pod's `environment`.
std::string started(const std::vector<std::string>& sets, const std::vector<std::pair<std::string, std::string>>& env) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("render-start-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const auto put = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  };
  put("workload.yaml", "x");
  put("sha256sum", "#!/bin/sh\necho '" + std::string(64, '1') + "  -'\n");
  put("torchrun", "#!/bin/sh\necho \"torchrun $*\"\nprintf '%s\\n' \"$MASTER_ADDR\"\n");
  const std::vector<Node> objects = made(sets);
  std::string script = at(of_kind(objects, "ConfigMap"), "data").find("start.sh")->text();
  const std::string files = "files=/systole/files";
  script.replace(script.find(files), files.size(), "files=" + folder.string());
  Command command;
  command.argv = {"env", "PATH=" + folder.string() + ":" + std::getenv("PATH")};
  for (const auto& [name, value] : env) command.argv.push_back(name + "=" + value);
  for (const char* word : {"sh", "-s"}) command.argv.emplace_back(word);
  CaptureOptions options;
  options.input = script;
  const Captured said = run_captured(command, options).value();
  std::filesystem::remove_all(folder);
  return said.out + said.err;
}

TEST(RenderKinds, torchrun_is_told_where_and_which) {
  const std::vector<std::string> sets = {kImage, "name=job", "resources={accelerators: 'a2-highgpu-2g:2'}",
                                         "command=[train.py, 'a b']", "kubernetes.launcher=torchrun"};
  const std::string common = "--rdzv_backend=c10d --rdzv_endpoint=";
  EXPECT_EQ(started(sets, {{"JOB_COMPLETION_INDEX", "0"},
                           {"POD_IP", "10.0.0.7"},
                           {"MASTER_ADDR", "job-0.job"},
                           {"MASTER_PORT", "29500"}}),
            "torchrun --nnodes=2 --nproc_per_node=2 --node_rank=0 --max_restarts=0 " + common +
                "10.0.0.7:29500 --rdzv_id=job --rdzv_conf=is_host=1 --no-python train.py a b\n10.0.0.7\n");
  EXPECT_EQ(started(sets, {{"JOB_COMPLETION_INDEX", "1"},
                           {"POD_IP", "10.0.0.8"},
                           {"MASTER_ADDR", "job-0.job"},
                           {"MASTER_PORT", "29500"}}),
            "torchrun --nnodes=2 --nproc_per_node=2 --node_rank=1 --max_restarts=0 " + common +
                "job-0.job:29500 --rdzv_id=job --rdzv_conf=is_host=0 --no-python train.py a b\njob-0.job\n");
}

TEST(RenderKinds, hosts_of_a_slice_know_each_other) {
  std::vector<std::string> sets = {kImage, "name=job", "resources.accelerators=v5p-32:2", "kubernetes.launcher=program",
                                   "command=[sh, -c, 'echo $TPU_WORKER_ID $TPU_WORKER_HOSTNAMES $JAX_PROCESS_ID']"};
  EXPECT_EQ(started(sets, {{"JOB_COMPLETION_INDEX", "3"}, {"MEGASCALE_SLICE_ID", "1"}}),
            "3 job-slice-1-0.job,job-slice-1-1.job,job-slice-1-2.job,job-slice-1-3.job 7\n");
  EXPECT_EQ(
      started(sets, {{"JOB_COMPLETION_INDEX", "3"}, {"MEGASCALE_SLICE_ID", "1"}, {"TPU_WORKER_HOSTNAMES", "a,b"}}),
      "3 a,b 7\n")
      << "as GKE says";
  sets[2] = "resources.accelerators=v5e:4x4";
  EXPECT_EQ(started(sets, {{"JOB_COMPLETION_INDEX", "2"}}),
            "2 job-slice-0-0.job,job-slice-0-1.job,job-slice-0-2.job,job-slice-0-3.job 2\n");
  sets.push_back("kubernetes.kind=job");
  EXPECT_EQ(started(sets, {{"JOB_COMPLETION_INDEX", "0"}}), "0 job-0.job,job-1.job,job-2.job,job-3.job 0\n");
}

TEST(RenderKinds, no_text_of_a_users_becomes_structure) {
  for (const auto& sets : {kJobSet, kPyTorchJob, kJaxJob, kTrainJob}) {
    const std::vector<Node> plain = made(sets);
    for (const std::string& text : hostile_texts()) {
      Workload hostile = workload("ddp.yaml", sets);
      hostile.command = {"echo", text};
      hostile.env["X"] = text;
      hostile.labels["note"] = text;
      const std::vector<Node> objects = objects_of(hostile);
      ASSERT_EQ(objects.size(), plain.size()) << text;
      for (const Node& object : objects) EXPECT_EQ(schemas().wrong(object).value_or(""), "") << text;
    }
  }
  // A word of the command stays one argument of the program; no variable is substituted in a value of env.
  for (const std::string& text : hostile_texts()) {
    Workload hostile = workload("ddp.yaml", {kImage, "resources.accelerators=h100:8", "kubernetes.launcher=program"});
    hostile.command = {"printf", "%s", text};
    hostile.env["X"] = text;
    hostile.resume.from = text;
    const std::vector<Node> objects = objects_of(hostile);
    std::string script = at(of_kind(objects, "ConfigMap"), "data").find("start.sh")->text();
    script = script.substr(script.rfind("\nexec ") + 1);
    if (text.find('\n') != text.npos) script = "exec printf %s " + shell_word(text) + "\n";
    Command command;
    command.argv = {"sh", "-s"};
    CaptureOptions options;
    options.input = script;
    EXPECT_EQ(run_captured(command, options).value().out, text);
    int said = 0;
    for (const Node& one : at(of_kind(objects, "Job"), "spec.template.spec.containers.0.env").items()) {
      if (one.find("name")->text() != "X" && one.find("name")->text() != "SYSTOLE_RESUME_FROM") continue;
      EXPECT_EQ(one.find("value")->text(), kube_value(text)) << text;
      ++said;
    }
    EXPECT_EQ(said, text.empty() ? 1 : 2) << "what others start finds where it begins, too";
  }
}

TEST(KubeValue, is_what_kubernetes_puts_no_variable_into) {
  EXPECT_EQ(kube_value("$(SECRET)"), "$$(SECRET)");
  EXPECT_EQ(kube_value("$$(SECRET)"), "$$$$(SECRET)");
  EXPECT_EQ(kube_value("a $HOME $"), "a $HOME $");
}

}  // namespace
}  // namespace systole

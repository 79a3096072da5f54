// Manifests of Kubernetes as workloads; and what Systole rendered, as the workload that it was rendered from.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "ground/base/text_file.h"
#include "operate/import/import.h"
#include "operate/render/hostile.h"

namespace systole {
namespace {

const std::string kRendered = std::string(SYSTOLE_SOURCE_DIR) + "/examples/rendered";

Imported imported(const std::string& text) {
  const Result<Imported> made = import_job({text, "pasted"});
  CHECK(made.ok(), "{}", to_string(made.error()));
  return *made;
}
Workload workload_of(const std::string& text) { return read_workload(imported(text).yaml, "f").value(); }
std::string refused(const std::string& text) {
  const Result<Imported> made = import_job({text, "pasted"});
  return made.ok() ? "" : to_string(made.error());
}
std::string why(const Imported& made, std::string_view what) {
  for (const LeftOut& out : made.left_out)
    if (out.what.find(what) != std::string::npos) return out.why;
  return "";
}

using Words = std::vector<std::string>;

constexpr const char* kJob = R"(# A job.
apiVersion: v1
kind: Service
metadata: { name: dlrm }
spec: { clusterIP: None }
---
apiVersion: batch/v1
kind: Job
metadata:
  name: dlrm
  namespace: research
  labels: { team: ads, kueue.x-k8s.io/queue-name: q }
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  backoffLimit: 6
  activeDeadlineSeconds: 7200
  ttlSecondsAfterFinished: 60
  template:
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 65
      nodeSelector: { cloud.google.com/gke-accelerator: nvidia-tesla-a100 }
      containers:
        - name: torchrec
          image: registry.example/dlrm:1
          command: [torchrun]
          args: ["--nnodes=2", "--nproc_per_node=8", "--rdzv_endpoint=$(MASTER_ADDR):29500", train.py, "--batch=2048"]
          resources:
            limits: { nvidia.com/gpu: 8, memory: 1200Gi }
            requests: { cpu: "96" }
          env:
            - { name: NCCL_DEBUG, value: INFO }
            - { name: MASTER_ADDR, value: dlrm-0.dlrm }
            - { name: TOKEN, valueFrom: { secretKeyRef: { name: s, key: k } } }
          volumeMounts:
            - { name: data, mountPath: /data }
            - { name: dshm, mountPath: /dev/shm }
            - { name: nfs, mountPath: /mnt }
      volumes:
        - { name: data, persistentVolumeClaim: { claimName: corpus } }
        - { name: dshm, emptyDir: { medium: Memory } }
        - { name: nfs, nfs: { server: filestore, path: /x } }
      restartPolicy: Never
)";

TEST(ImportManifest, takes_a_job_and_tells_of_every_field_that_it_leaves) {
  const Imported made = imported(kJob);
  const Workload w = workload_of(kJob);
  EXPECT_EQ(w.name, "dlrm");
  EXPECT_EQ(w.kubernetes.name_space, "research");
  EXPECT_EQ(w.labels.at("team"), "ads");
  EXPECT_EQ(w.resources.nodes, (CountRange{2, 2}));
  EXPECT_EQ(w.resources.gpus_per_node, 8);
  EXPECT_EQ(w.resources.threads, 12);
  EXPECT_EQ(w.resources.memory, Bytes(1200 * kGiB.count()));
  EXPECT_EQ(w.resources.longest, Seconds(7200.0));
  EXPECT_EQ(w.ranks.notice, Seconds(60.0));
  EXPECT_EQ(w.ranks.retries, 3);
  EXPECT_EQ(w.image, "registry.example/dlrm:1");
  EXPECT_EQ(w.env, (std::map<std::string, std::string>{{"NCCL_DEBUG", "INFO"}}));
  EXPECT_EQ(w.claims, (std::map<std::string, std::string>{{"/data", "corpus"}}));
  EXPECT_EQ(w.kubernetes.selector.at("cloud.google.com/gke-accelerator"), "nvidia-tesla-a100");
  EXPECT_EQ(w.command, (Words{"python3", "-u", "train.py", "--batch=2048"}));
  for (const char* what : {"kind Service", "queue-name", "ttlSecondsAfterFinished", "hostNetwork", "TOKEN",
                           "MASTER_ADDR", "volumes.2", "volumeMounts.2", "--rdzv_endpoint"})
    EXPECT_NE(why(made, what), "") << what << "\n" << made.yaml;
  EXPECT_EQ(why(made, "volumes.1"), "") << "render gives it";
}

TEST(ImportManifest, takes_what_a_container_runs) {
  const auto with = [](const std::string& command) {
    return workload_of(
               "apiVersion: batch/v1\nkind: Job\nmetadata: { name: a }\nspec: { template: { spec: { containers: "
               "[{ name: a, image: i:1, command: " +
               command + " }] } } }\n")
        .command;
  };
  EXPECT_EQ(with("[bash, -xc, 'export A=1; torchrun --nproc_per_node=1 resnet.py --backend=gloo']"),
            (Words{"python3", "-u", "resnet.py", "--backend=gloo"}));
  EXPECT_EQ(with("[bash, -c, 'for i in 1 2; do echo $i; done']"),
            (Words{"bash", "-c", "for i in 1 2; do echo $i; done"}));
  EXPECT_EQ(with("[python3, a.py, '$(POD_NAME)', '$$(X)', 'it''s $HOME']"),
            (Words{"bash", "-c", "exec python3 a.py \"${POD_NAME}\" '$(X)' 'it'\\''s $HOME'"}));
  EXPECT_EQ(with("[python3, a.py, '$$(X)', '$HOME', '']"), (Words{"python3", "a.py", "$(X)", "$HOME", ""}));
}

TEST(ImportManifest, takes_jobsets_and_pytorchjobs) {
  const Workload set = workload_of(R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: { generateName: pytorch- }
spec:
  failurePolicy: { maxRestarts: 4 }
  replicatedJobs:
    - name: workers
      replicas: 2
      template:
        spec:
          parallelism: 4
          completions: 4
          backoffLimit: 0
          template:
            spec:
              containers: [{ name: p, image: i:1, command: [torchrun, --nproc_per_node=1, resnet.py] }]
)");
  EXPECT_EQ(set.name, "pytorch");
  EXPECT_EQ(set.resources.nodes, (CountRange{8, 8}));
  EXPECT_EQ(set.ranks.retries, 4);
  const std::string replica =
      "{ replicas: 1, restartPolicy: OnFailure, template: { spec: { containers: [{ name: pytorch, image: i:1, command: "
      "[python3, mnist.py] }] } } }";
  const std::string job =
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: { name: mnist }\nspec: { nprocPerNode: \"4\", "
      "pytorchReplicaSpecs: { Master: " +
      replica + ", Worker: " + replica + " } }\n";
  const Workload torch = workload_of(job);
  EXPECT_EQ(torch.resources.nodes, (CountRange{2, 2}));
  EXPECT_EQ(torch.resources.ranks_per_node, 4);
  EXPECT_EQ(torch.command, (Words{"python3", "mnist.py"}));
  const Workload elastic = workload_of(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: { name: e }\nspec: { elasticPolicy: { rdzvBackend: "
      "c10d, "
      "minReplicas: 1, maxReplicas: 3, maxRestarts: 100 }, pytorchReplicaSpecs: { Worker: " +
      replica + " } }\n");
  EXPECT_EQ(elastic.resources.nodes, (CountRange{1, 3}));
  EXPECT_EQ(elastic.ranks.retries, 100);
}

TEST(ImportManifest, refuses_what_is_no_job) {
  EXPECT_NE(refused("apiVersion: v1\nkind: Pod\nmetadata: { name: a }\n").find("kind Pod: Job, JobSet and PyTorchJob"),
            std::string::npos);
  EXPECT_NE(refused("apiVersion: v1\nkind: Service\n").find("no Job, JobSet or PyTorchJob is in it"),
            std::string::npos);
  EXPECT_NE(refused(std::string(kJob) + "---\n" + kJob).find("two jobs"), std::string::npos);
  EXPECT_NE(refused("apiVersion: batch/v1\nkind: Job\nkind: Job\n").find("pasted:3:1"), std::string::npos)
      << "a key twice";
  EXPECT_NE(refused("---\napiVersion: batch/v1\nkind: Job\nmetadata: [").find("pasted:5:"), std::string::npos)
      << refused("---\napiVersion: batch/v1\nkind: Job\nmetadata: [");
  EXPECT_NE(refused("apiVersion: batch/v1\nkind: Job\nspec: { template: { spec: { containers: [{ image: i:1 }] } } }\n")
                .find("the image's own program"),
            std::string::npos);
}

TEST(ImportManifest, texts_stay_texts) {
  for (const std::string& text : hostile_texts()) {
    const Node container = Node::map({{"name", "a"},
                                      {"image", "i:1"},
                                      {"command", Node::sequence({"python3", "a.py", text})},
                                      {"env", Node::sequence({Node::map({{"name", "X"}, {"value", text}})})}});
    const Node spec =
        Node::map({{"template", Node::map({{"spec", Node::map({{"containers", Node::sequence({container})}})}})}});
    const Node job = Node::map(
        {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", Node::map({{"name", "a"}})}, {"spec", spec}});
    const Workload w = workload_of(to_yaml(job));
    EXPECT_EQ(w.env.at("X"), text);
    ASSERT_GE(w.command.size(), 3u);
    if (text != "$(SECRET)" && text.find("$$") == text.npos) { EXPECT_EQ(w.command, (Words{"python3", "a.py", text})); }
    EXPECT_EQ(w.image, "i:1");
  }
}

// Each rendered example whose format is one of those that are imported.
TEST(ImportRendered, gives_back_what_it_was_rendered_from) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRendered)) {
    const std::filesystem::path folder = entry.path();
    for (const char* name : {"job.sbatch", "job.yaml"}) {
      if (!std::filesystem::exists(folder / name)) continue;
      ImportSource source{read_text_file((folder / name).string()).value(), name};
      source.beside = [&](const std::string& file) { return read_text_file((folder / file).string()); };
      const Result<Imported> made = import_job(source);
      ASSERT_TRUE(made.ok()) << folder << ": " << to_string(made.error());
      const Workload back = read_workload(made->yaml, "back").value();
      std::string text;
      if (std::string(name) == "job.sbatch") {
        text = source.beside("workload.yaml").value();
      } else {
        const std::string begin = "\n  workload.yaml: |\n";
        std::string rest = source.text.substr(source.text.find(begin) + begin.size());
        for (std::size_t at = 0; at < rest.size() && rest.compare(at, 4, "    ") == 0;) {
          const std::size_t end = rest.find('\n', at);
          text += rest.substr(at + 4, end - at - 3);
          at = end + 1;
        }
      }
      EXPECT_EQ(to_yaml(back), to_yaml(read_workload(text, "was").value())) << folder;
      ++seen;
    }
  }
  EXPECT_GE(seen, 6);
}

// What the files themselves say wins over the workload beside them: somebody may have edited them.
TEST(ImportRendered, takes_resources_from_the_script) {
  const std::string folder = kRendered + "/slurm-program/";
  std::string script = read_text_file(folder + "job.sbatch").value();
  for (const auto& [what, by] :
       {std::pair("--nodes=2", "--nodes=3"), std::pair("--gpus-per-node=h100:8", "--gpus-per-node=h200:4"),
        std::pair("--time=2-00:00:00", "--time=0-01:00:00")}) {
    const std::size_t at = script.find(what);
    ASSERT_NE(at, script.npos) << what;
    script.replace(at, std::string(what).size(), by);
  }
  const ImportSource source{script, "job.sbatch",
                            [&](const std::string& file) { return read_text_file(folder + file); }};
  const Workload w = read_workload(import_job(source).value().yaml, "f").value();
  EXPECT_EQ(w.resources.nodes, (CountRange{3, 3}));
  EXPECT_EQ(w.resources.gpus_per_node, 4);
  EXPECT_EQ(w.slurm.gpu_type, "h200");
  EXPECT_EQ(w.resources.longest, Seconds(3600.0));
  EXPECT_EQ(w.command, (Words{"python3", "examples/ddp.py"}));
  EXPECT_NE(refused(script).find("its workload.yaml is not beside it"), std::string::npos);
}

}  // namespace
}  // namespace systole

// Kubernetes manifests as workloads; and rendered files, as the workloads that they were rendered from.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"
#include "operate/import/testing/imported.h"
#include "operate/render/testing/hostile.h"

namespace systole {
namespace {

const std::string kRendered = std::string(SYSTOLE_SOURCE_DIR) + "/examples/rendered";

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
  const auto place = [](const std::string& text) { return to_string(import_job({text, "pasted"}).error().where); };
  EXPECT_EQ(place("apiVersion: batch/v1\nkind: Job\nkind: Job\n"), "pasted:3:1") << "a key twice";
  EXPECT_EQ(place("---\napiVersion: batch/v1\nkind: Job\nmetadata: ["), "pasted:4:11") << "where it opens";
  EXPECT_NE(refused("apiVersion: batch/v1\nkind: Job\nspec: { template: { spec: { containers: [{ image: i:1 }] } } }\n")
                .find("the image's own program"),
            std::string::npos);
}

// A job of one container; `more` has the container's other fields.
std::string job_with(const std::string& container, const std::string& spec = "") {
  return "apiVersion: batch/v1\nkind: Job\nmetadata: { name: a }\nspec: { " + spec +
         "template: { spec: { containers: [{ name: a, image: r/i:1, " + container + " }] } } }\n";
}

TEST(ImportManifest, puts_in_variables_as_kubernetes_does) {
  const Workload w = workload_of(job_with(
      "command: [sh, -c, 'echo $OUT'], env: [{name: BASE, value: /mnt}, {name: OUT, value: $(BASE)/out}, "
      "{name: LIT, value: $$(BASE)}, {name: DEEP, value: '$(OUT)/$(BASE)$$'}, {name: TWICE, value: $$$(BASE)}]"));
  EXPECT_EQ(
      w.env,
      (std::map<std::string, std::string>{
          {"BASE", "/mnt"}, {"OUT", "/mnt/out"}, {"LIT", "$(BASE)"}, {"DEEP", "/mnt/out//mnt$"}, {"TWICE", "$/mnt"}}));
  // A variable that is defined later, or not at all, stays as written, and is reported.
  const Imported later = imported(job_with("command: [a], env: [{name: X, value: $(Y)}, {name: Y, value: '1'}]"));
  EXPECT_EQ(read_workload(later.yaml, "f").value().env.at("X"), "$(Y)");
  EXPECT_NE(why(later, "env.0 X").find("$(Y) stays as it stands"), std::string::npos);
  const Imported secret = imported(job_with(
      "command: [a], env: [{name: T, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: URL, value: 'x:$(T)'}]"));
  EXPECT_NE(why(secret, "env.1 URL").find("$(T) in it is known only where it runs"), std::string::npos);
  // In the command: known texts are substituted, others by a shell; a shell command stays one.
  EXPECT_EQ(workload_of(job_with("command: [python3, t.py, $(A)/x], env: [{name: A, value: /a}]")).command,
            (Words{"python3", "t.py", "/a/x"}));
  EXPECT_EQ(workload_of(job_with("command: [torchrun, --nproc-per-node=$(N), t.py], env: [{name: N, value: '4'}]"))
                .resources.ranks_per_node,
            4);
  EXPECT_EQ(workload_of(job_with("command: [sh, -c, 'python3 t.py --at $(date)']")).command,
            (Words{"bash", "-c", "exec python3 t.py --at $(date)"}));
  EXPECT_EQ(workload_of(job_with("command: [python3, t.py, $(MASTER_ADDR)], env: [{name: MASTER_ADDR, value: h}]"))
                .command[2],
            "exec python3 t.py \"${MASTER_ADDR}\"");
}

TEST(ImportManifest, reads_every_form_that_kubectl_takes) {
  const std::string rest =
      R"("metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "r/i:1", "command": ["python3", "t.py"]}]}}})";
  const std::string plain =
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n"
      "      containers:\n        - {name: a, image: r/i:1, command: [python3, t.py]}\n";
  std::string indented, quoted = plain, windows;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = plain.find('\n', at);
    indented += "  " + plain.substr(at, end - at) + "\n";
    windows += plain.substr(at, end - at) + "\r\n";
    at = end + 1;
  }
  for (const std::string key : {"apiVersion", "kind", "metadata", "spec"})
    quoted.replace(quoted.find(key), key.size(), "\"" + key + "\"");
  std::string lines = "{\"apiVersion\": \"batch/v1\",\n  \"kind\": \"Job\",\n  " + rest + "\n}\n";
  for (const std::string& text : std::vector<std::string>{
           plain, indented, quoted, windows, lines, "{\"apiVersion\": \"batch/v1\", \"kind\": \"Job\", " + rest + "}",
           "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [{\"apiVersion\": \"batch/v1\", \"kind\": "
           "\"Job\", " +
               rest + "}]}",
           "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {containers: [{name: a, "
           "image: "
           "'r/i:1', command: [python3, t.py]}]}}}}",
           "\n\n  ---\n" + indented + "  ---\n  apiVersion: v1\n  kind: Service\n", "\xef\xbb\xbf" + plain,
           "'apiVersion' : batch/v1\n'kind' : Job\n" + plain.substr(plain.find("metadata")), "---\n" + plain + "---\n",
           "\t\n" + lines}) {
    const Result<Imported> made = import_job({text, "f"});
    ASSERT_TRUE(made.ok()) << to_string(made.error()) << "\n" << text;
    const Workload w = read_workload(made->yaml, "f").value();
    EXPECT_EQ(w.command, (Words{"python3", "t.py"})) << text;
    EXPECT_EQ(w.image, "r/i:1") << text;
  }
  for (const char* other : {"{\"a\": 1}", "{\n  \"a\": 1\n}\n", "{\"a\": 1, \"b\": [1, 2]}"})
    EXPECT_NE(refused(other).find("it reads as JSON"), std::string::npos) << other << refused(other);
  EXPECT_NE(refused("spec:\n  template: x\n").find("it reads as YAML"), std::string::npos);
  EXPECT_NE(refused("systole: 1\nname: a\n").find("it is a workload already"), std::string::npos);
}

TEST(ImportManifest, gives_each_field_its_own_reason) {
  const Imported made = imported(job_with(
      "workingDir: /app, envFrom: [{configMapRef: {name: c}}], livenessProbe: {exec: {command: [a]}}, "
      "readinessProbe: {exec: {command: [a]}}, startupProbe: {exec: {command: [a]}}, lifecycle: {preStop: {}}, "
      "stdin: true, tty: true, terminationMessagePath: /x, resizePolicy: [{resourceName: cpu}], "
      "command: [python3, t.py] }, { name: side, image: 'r/s:1'",
      "backoffLimit: 2147483647, "));
  const Workload w = read_workload(made.yaml, "f").value();
  EXPECT_EQ(w.ranks.retries, 1000);
  EXPECT_EQ(why(made, "spec.backoffLimit"), "ranks.retries is 1000 at most");
  EXPECT_EQ(w.command, (Words{"bash", "-c", "cd /app\nexec python3 t.py"}));
  EXPECT_EQ(why(made, "cd /app"), "each rank runs it first, in command");
  EXPECT_EQ(why(made, "containers.1"), "a pod here has one container; others: add them to what render writes");
  std::set<std::string> reasons;
  for (const char* field :
       {"envFrom", "livenessProbe", "readinessProbe", "lifecycle", "stdin", "terminationMessagePath", "resizePolicy"}) {
    const std::string reason = why(made, std::string("containers.0.") + field);
    EXPECT_NE(reason, "") << field << made.yaml;
    EXPECT_EQ(reason.find("one container"), std::string::npos) << field;
    EXPECT_TRUE(reasons.insert(reason).second) << field << ": " << reason;
  }
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
    // $$ is a literal dollar in a manifest.
    EXPECT_EQ(w.env.at("X"), text == "$$" ? "$" : text == "$$(SECRET)" ? "$(SECRET)" : text);
    ASSERT_GE(w.command.size(), 3u);
    if (text != "$(SECRET)" && text.find("$$") == text.npos) { EXPECT_EQ(w.command, (Words{"python3", "a.py", text})); }
    EXPECT_EQ(w.image, "i:1");
  }
}

// Every rendered example in a format that can be imported.
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

TEST(ImportRendered, names_the_workload_of_a_server) {
  const std::string folder = kRendered + "/slurm-serve/";
  ImportSource source{read_text_file(folder + "serve.sbatch").value(), "serve.sbatch"};
  source.beside = [&](const std::string& file) { return read_text_file(folder + file); };
  const Result<Imported> made = import_job(source);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::unsupported);
  EXPECT_EQ(made.error().message, "Systole rendered this script, of a server; jobs are imported");
  EXPECT_EQ(made.error().hint, "its workload is workload.yaml beside it");
}

// The same for a manifest: edits of fields that correspond to one key.
TEST(ImportRendered, takes_what_was_edited_in_a_manifest) {
  std::string text = read_text_file(kRendered + "/kubernetes-program/job.yaml").value();
  const std::size_t job = text.find("kind: Job\n");
  const std::string digest = "registry.example/ddp@sha256:" + std::string(64, 'a');
  for (const auto& [what, by] :
       {std::pair<std::string, std::string>(digest, "registry.example/ddp@sha256:" + std::string(64, 'b')),
        {"completions: 2", "completions: 4"},
        {"limits:\n              memory: 512Gi", "limits:\n              memory: 256Gi"},
        {"namespace: research", "namespace: other"}}) {
    const std::size_t at = text.find(what, job);
    ASSERT_NE(at, text.npos) << what;
    text.replace(at, what.size(), by);
  }
  const Imported made = imported(text);
  const Workload w = read_workload(made.yaml, "f").value();
  EXPECT_EQ(w.image, "registry.example/ddp@sha256:" + std::string(64, 'b'));
  EXPECT_EQ(w.resources.nodes, (CountRange{4, 4}));
  EXPECT_EQ(w.resources.memory, kGiB * 256);
  EXPECT_EQ(w.kubernetes.name_space, "other");
  EXPECT_EQ(w.resources.gpus_per_node, 8);
  EXPECT_NE(why(made, "other changes of the manifest"), "");
}

// The files win over the workload beside them: they may have been edited.
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

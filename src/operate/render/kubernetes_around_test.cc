// What stands around a job of Kubernetes: networks of each family of machines, volumes, queues, identity and secrets,
// each held to its official schema.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "operate/render/hostile.h"
#include "operate/render/kubernetes_testing.h"

namespace systole {
namespace {

std::vector<std::string> program_on(const std::string& accelerators, std::vector<std::string> more = {}) {
  std::vector<std::string> sets = {"image=registry.example/ddp@sha256:" + std::string(64, 'a'), "claims={/runs: runs}",
                                   "folder=/runs", "resources.threads=4", "resources.memory=16GiB"};
  if (!accelerators.empty()) sets.push_back("resources.accelerators=" + accelerators);
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

const Node& container_of(const Node& job) { return at(job, "spec.template.spec.containers.0"); }

std::map<std::string, std::string> env_of(const Node& job) {
  std::map<std::string, std::string> env;
  for (const Node& one : at(container_of(job), "env").items())
    if (const Node* value = one.find("value"); value != nullptr) env[one.find("name")->text()] = value->text();
  return env;
}

std::string text_of(const std::vector<std::string>& sets) {
  return rendered(workload("ddp.yaml", sets)).value().files[0].text;
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_official(const std::vector<Node>& objects) {
  for (const Node& object : objects) {
    if (object.find("kind")->text() == "SecretProviderClass") continue;  // no schema of it is stored
    EXPECT_EQ(schemas().wrong(object).value_or(""), "") << to_yaml(object);
  }
}

struct Family {
  const char* accelerators;
  int networks;         // beside eth0
  const char* sidecar;  // "" for none
  const char* script;   // that start.sh runs before
};
constexpr Family kFamilies[] = {{"t4:16@n1-*+4xt4", 0, "", ""},
                                {"g2-standard-96:2", 0, "", ""},
                                {"a2-highgpu-8g:2", 0, "", ""},
                                {"a3-highgpu-4g:2", 0, "", ""},
                                {"a3-highgpu-8g:2", 4, "tcpx-daemon", ""},
                                {"a3-megagpu-8g:2", 8, "tcpxo-daemon", "nccl-env-profile.sh"},
                                {"a3-ultragpu-8g:2", 8, "", "set_nccl_env.sh"},
                                {"a4-highgpu-8g:2", 8, "", "set_nccl_env.sh"},
                                {"a4x-highgpu-4g:2", 4, "", "set_nccl_env.sh"}};

TEST(RenderNetwork, each_family_has_its_own_and_all_of_it_is_official) {
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.accelerators);
    const std::vector<Node> objects = objects_of(workload("ddp.yaml", program_on(family.accelerators)));
    expect_official(objects);
    const Node& job = of_kind(objects, "Job");
    const Node* annotations = at(job, "spec.template.metadata").find("annotations");
    const Node* interfaces = annotations->find("networking.gke.io/interfaces");
    ASSERT_EQ(interfaces != nullptr, family.networks > 0);
    if (interfaces != nullptr) {
      const Node list = parse_yaml(interfaces->text(), "interfaces").value();  // JSON is YAML
      EXPECT_EQ(list.items().size(), static_cast<std::size_t>(family.networks) + 1);
      EXPECT_EQ(list.items()[0].find("network")->text(), "default");
    }
    const Node* beside = at(job, "spec.template.spec").find("initContainers");
    ASSERT_EQ(beside != nullptr, *family.sidecar != '\0');
    if (beside != nullptr) {
      const Node& daemon = beside->items()[0];
      EXPECT_EQ(daemon.find("name")->text(), family.sidecar);
      EXPECT_EQ(daemon.find("restartPolicy")->text(), "Always") << "or the job never ends";
      EXPECT_NE(annotations->find(fmt::format("devices.gke.io/container.{}", family.sidecar)), nullptr);
      EXPECT_FALSE(has(daemon.find("image")->text(), ";")) << daemon.find("image")->text();
    }
    const std::string start = at(of_kind(objects, "ConfigMap"), "data").find("start.sh")->text();
    EXPECT_EQ(has(start, "SYSTOLE_NETWORK"), *family.script != '\0');
    EXPECT_TRUE(has(start, family.script)) << start;
    const std::map<std::string, std::string> env = env_of(job);
    EXPECT_EQ(env.at("NCCL_DEBUG"), "WARN");
    EXPECT_EQ(env.at("NCCL_SOCKET_IFNAME"), "eth0");
    EXPECT_EQ(env.contains("NCCL_IB_DISABLE"), family.networks == 0);
    EXPECT_FALSE(env.contains("LD_LIBRARY_PATH")) << "the image's own would be lost";
    // Every mount has its volume, in the daemon too.
    std::set<std::string> volumes;
    for (const Node& volume : at(job, "spec.template.spec.volumes").items())
      EXPECT_TRUE(volumes.insert(volume.find("name")->text()).second) << volume.find("name")->text();
    for (const Node& mount : at(container_of(job), "volumeMounts").items())
      EXPECT_TRUE(volumes.contains(mount.find("name")->text()));
    if (beside != nullptr) {
      for (const Node& mount : beside->items()[0].find("volumeMounts")->items())
        EXPECT_TRUE(volumes.contains(mount.find("name")->text())) << mount.find("name")->text();
    }
  }
}

TEST(RenderNetwork, a4x_pods_hold_a_channel_of_one_compute_domain) {
  const std::vector<Node> objects = objects_of(workload("ddp.yaml", program_on("a4x-highgpu-4g:2")));
  const Node& domain = of_kind(objects, "ComputeDomain");
  EXPECT_EQ(at(domain, "spec.numNodes").text(), "2");
  const Node& pod = at(of_kind(objects, "Job"), "spec.template.spec");
  EXPECT_EQ(at(pod, "resourceClaims.0.resourceClaimTemplateName").text(),
            at(domain, "spec.channel.resourceClaimTemplate.name").text());
  EXPECT_EQ(at(pod, "containers.0.resources.claims.0.name").text(), at(pod, "resourceClaims.0.name").text());
}

// What the table does not name is told nothing; nor is what has no other machine to speak to.
TEST(RenderNetwork, machines_alone_tpus_and_unknown_ones_are_told_nothing) {
  for (const std::vector<std::string>& sets :
       {program_on("a3-highgpu-8g:1"), program_on("v5e:4x4"), program_on("v5p:2x2x2"), program_on("v6e:4x4"),
        program_on("", {"resources.nodes=2", "resources.gpus_per_node=8"}), program_on("", {"resources.nodes=2"})}) {
    const std::string text = text_of(sets);
    for (const char* word : {"NCCL", "networking.gke.io", "hostPath", "initContainers"})
      EXPECT_FALSE(has(text, word)) << sets.back() << ": " << word;
  }
}

TEST(RenderNetwork, what_env_says_wins_and_both_are_named) {
  const std::vector<std::string> sets =
      program_on("a3-highgpu-8g:2", {"env={NCCL_SOCKET_IFNAME: bond0, NCCL_DEBUG: WARN}"});
  const Rendered made = rendered(workload("ddp.yaml", sets)).value();
  EXPECT_FALSE(has(made.files[0].text, "name: NCCL_SOCKET_IFNAME\n")) << "of a rank it is what env says";
  int told = 0;
  for (const std::string& warning : made.warnings)
    if (has(warning, "NCCL_SOCKET_IFNAME is bond0; a3-highgpu-8g would have eth0")) ++told;
  EXPECT_EQ(told, 1);
  for (const std::string& warning : made.warnings) EXPECT_FALSE(has(warning, "NCCL_DEBUG")) << "they agree";
}

TEST(RenderNetwork, values_say_where_they_come_from) {
  EXPECT_TRUE(has(text_of(program_on("a3-highgpu-8g:2")),
                  "value: \"0\" # nccl.csv, 2026-08: GoogleCloudPlatform/cluster-toolkit:"));
}

std::vector<std::string> with_volumes(const std::string& volumes, std::vector<std::string> more = {}) {
  more.push_back("volumes={" + volumes + "}");
  return program_on("", more);
}

TEST(RenderVolumes, of_every_kind_are_official_and_mounted_where_they_were_asked_for) {
  const std::string all =
      "/claim: corpus, /made: {claim: results, size: 1TiB, class: standard-rwx}, /nfs: {nfs: '10.0.0.2:/vol1', "
      "read_only: true}, /bucket: {bucket: my-corpus, read_only: true}, /filestore: {filestore: basic-ssd, size: "
      "3TiB}, /lustre: {lustre: p/us-central1-a/fast, size: 9000GiB, address: 10.0.0.3/lfs}, /parallelstore: "
      "{parallelstore: p/us-central1-a/ps, size: 12TiB, address: '10.0.0.4,10.0.0.5'}, /disk: {hyperdisk: balanced, "
      "size: 500GiB}, /scratch: {local_ssd: true, size: 300GiB}";
  const std::vector<Node> objects = objects_of(workload("ddp.yaml", with_volumes(all)));
  expect_official(objects);
  const Node& job = of_kind(objects, "Job");
  std::map<std::string, std::string> mounts;  // name by path
  for (const Node& mount : at(container_of(job), "volumeMounts").items())
    mounts[mount.find("mountPath")->text()] = mount.find("name")->text();
  const auto volume = [&](const std::string& path) {
    for (const Node& one : at(job, "spec.template.spec.volumes").items())
      if (one.find("name")->text() == mounts.at(path)) return one;
    return Node();
  };
  EXPECT_EQ(at(volume("/claim"), "persistentVolumeClaim.claimName").text(), "corpus");
  EXPECT_EQ(at(volume("/nfs"), "nfs.server").text(), "10.0.0.2");
  EXPECT_EQ(at(volume("/bucket"), "csi.volumeAttributes.bucketName").text(), "my-corpus");
  EXPECT_EQ(at(volume("/scratch"), "emptyDir.sizeLimit").text(), "300Gi");
  const Node& annotations = at(job, "spec.template.metadata.annotations");
  EXPECT_EQ(annotations.find("gke-gcsfuse/volumes")->text(), "true");
  EXPECT_EQ(annotations.find("gke-parallelstore/volumes")->text(), "true");
  // A claim that is made is of a class or a volume that is made with it, or of the cluster's.
  std::set<std::string> classes = {"standard-rwx", ""}, volumes = {};
  for (const Node& object : objects) {
    if (object.find("kind")->text() == "StorageClass") classes.insert(at(object, "metadata.name").text());
    if (object.find("kind")->text() != "PersistentVolume") continue;
    volumes.insert(at(object, "metadata.name").text());
    EXPECT_EQ(at(object, "spec.storageClassName").text(), "");
    EXPECT_EQ(at(object, "spec.persistentVolumeReclaimPolicy").text(), "Retain") << "it was there before";
  }
  EXPECT_EQ(classes.size(), 4U);
  EXPECT_EQ(volumes.size(), 2U);
  std::set<std::string> claims;
  for (const Node& object : objects) {
    if (object.find("kind")->text() != "PersistentVolumeClaim") continue;
    claims.insert(at(object, "metadata.name").text());
    EXPECT_TRUE(classes.contains(at(object, "spec.storageClassName").text()));
    const Node* name = at(object, "spec").find("volumeName");
    EXPECT_TRUE(name == nullptr || volumes.contains(name->text()));
  }
  EXPECT_EQ(claims.size(), 5U);
  for (const char* path : {"/made", "/filestore", "/lustre", "/parallelstore", "/disk"})
    EXPECT_TRUE(claims.contains(at(volume(path), "persistentVolumeClaim.claimName").text())) << path;
}

TEST(RenderVolumes, refuses_what_would_lose_a_run_or_never_mount) {
  const auto refuses = [](const std::string& volumes, std::vector<std::string> more, const std::string& part) {
    const std::string said = refusals("ddp.yaml", with_volumes(volumes, std::move(more)));
    EXPECT_NE(said.find(part), std::string::npos) << volumes << ": " << said;
  };
  refuses("/b: {bucket: my-runs}", {"folder=/b/runs"}, "its files cannot be renamed or locked, and a run's have to be");
  refuses("/s: {local_ssd: true}", {"folder=/s"}, "it ends with its pod");
  refuses("/n: {nfs: '10.0.0.2:/v', read_only: true}", {"folder=/n"}, "nothing can be written there");
  refuses("/d: {hyperdisk: balanced, size: 1TiB}", {"resources.nodes=2"}, "one node writes a disk, and here are 2");
  refuses("/n: {nfs: 'filestore-ip:/v'}", {}, "a server is an address or a dotted name");
  refuses("/n: {nfs: 10.0.0.2}", {}, "is no SERVER:/PATH");
  refuses("/b: {bucket: 'gs://my-runs'}", {}, "is no name of a bucket");
  refuses("/b: No_Name", {}, "is no name of a claim");
  refuses("/l: {lustre: fast, size: 1TiB, address: 10.0.0.1/lfs}", {}, "is no PROJECT/ZONE/INSTANCE");
  refuses("/l: {lustre: p/z/fast, size: 1TiB, address: 10.0.0.1}", {}, "is no IP/FILESYSTEM");
  refuses("/systole/x: a", {}, "is where the files of the run are");
  refuses("/runs: a", {}, "is in claims, too");
}

TEST(RenderSecrets, are_references_to_keys_of_secrets_and_of_secret_manager) {
  const std::vector<Node> objects = objects_of(workload(
      "ddp.yaml", program_on("", {"secrets={HF_TOKEN: 'kubernetes:hub/token', KEY: 'secret-manager:p/wandb/3'}",
                                  "kubernetes.gcp_service_account=trainer@p.iam.gserviceaccount.com"})));
  expect_official(objects);
  const Node& job = of_kind(objects, "Job");
  int found = 0;
  for (const Node& one : at(container_of(job), "env").items()) {
    if (one.find("name")->text() != "HF_TOKEN") continue;
    EXPECT_EQ(at(one, "valueFrom.secretKeyRef.name").text(), "hub");
    EXPECT_EQ(at(one, "valueFrom.secretKeyRef.key").text(), "token");
    ++found;
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(env_of(job).at("SYSTOLE_SECRETS"), "/systole/secrets");
  EXPECT_EQ(at(of_kind(objects, "SecretProviderClass"), "spec.parameters.secrets").text(),
            "- resourceName: \"projects/p/secrets/wandb/versions/3\"\n  path: \"KEY\"\n");
}

TEST(RenderSecrets, what_a_pod_does_not_see_is_refused_with_what_it_does) {
  const auto refuses = [](const std::string& secrets, const std::string& part) {
    const std::string said = refusals("ddp.yaml", program_on("", {"secrets={" + secrets + "}"}));
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("kubernetes"), std::string::npos) << said;
  };
  refuses("A: 'env:A'", "a pod has no environment of whoever submits it");
  refuses("A: 'file:/home/me/token'", "the file is in no volume of the pod");
  refuses("A: 'secret-manager:p/n'", "Secret Manager asks who the pod is, and it is nobody");
  EXPECT_EQ(refusals("ddp.yaml", program_on("", {"secrets={A: 'file:/runs/token'}"})), "");
}

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
  // Kueue admits no pod that asks for what has no quota.
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
      {"ClusterQueue", "spec.cohort", "all"},  // v1beta1's name of it
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
  EXPECT_TRUE(has(refusals("linear.yaml", program_on("", {"kubernetes.metrics_port=9090"})),
                  "a model serves no metrics; they are in its run's folder"));
  for (const Node& object : objects_of(workload("ddp.yaml", program_on(""))))
    EXPECT_NE(object.find("kind")->text(), "PodMonitoring");
}

}  // namespace
}  // namespace systole

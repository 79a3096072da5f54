// A pod's mounts and secrets, checked against the official schemas.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "operate/render/testing/hostile.h"
#include "operate/targets/kubernetes/testing/kubernetes_around.h"
#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {
namespace {

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
      "size: 500GiB}, /scratch: {local_ssd: true, size: 300GiB}, /new: {parallelstore: new, size: 12000GiB}";
  const std::vector<Node> objects = objects_of(workload("ddp.yaml", with_volumes(all)));
  expect_official(objects);
  const Node& job = of_kind(objects, "Job");
  std::map<std::string, std::string> mounts;  // path → name
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
  // The class or volume of a created claim is created with it, or is the cluster's.
  std::set<std::string> classes = {"standard-rwx", ""}, volumes = {};
  for (const Node& object : objects) {
    if (object.find("kind")->text() == "StorageClass") classes.insert(at(object, "metadata.name").text());
    if (object.find("kind")->text() != "PersistentVolume") continue;
    volumes.insert(at(object, "metadata.name").text());
    EXPECT_EQ(at(object, "spec.storageClassName").text(), "");
    EXPECT_EQ(at(object, "spec.persistentVolumeReclaimPolicy").text(), "Retain") << "it was there before";
  }
  EXPECT_EQ(classes.size(), 5U);
  EXPECT_EQ(volumes.size(), 2U);
  std::set<std::string> claims;
  for (const Node& object : objects) {
    if (object.find("kind")->text() != "PersistentVolumeClaim") continue;
    claims.insert(at(object, "metadata.name").text());
    EXPECT_TRUE(classes.contains(at(object, "spec.storageClassName").text()));
    const Node* name = at(object, "spec").find("volumeName");
    EXPECT_TRUE(name == nullptr || volumes.contains(name->text()));
  }
  EXPECT_EQ(claims.size(), 6U);
  for (const char* path : {"/made", "/filestore", "/lustre", "/parallelstore", "/disk", "/new"})
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

}  // namespace
}  // namespace systole

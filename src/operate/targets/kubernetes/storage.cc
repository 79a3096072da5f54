// Mounts: claims, NFS, buckets by Cloud Storage FUSE, file systems and disks that are created for the run or exist, and
// the machine's disks. Drivers and their parameters are GKE's, as in the manifests of
// GoogleCloudPlatform/lustre-csi-driver and AI-Hypercomputer/xpk (stored copies of 2026).
#include <algorithm>

#include "describe/spec/mounted.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

using Kind = VolumeSpec::Kind;

constexpr const char* kClaim = R"(
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  accessModes: [$access]
  storageClassName: $class
  volumeName: $volume
  resources: { requests: { storage: $size } }
)";

constexpr const char* kClass = R"(
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: $name, labels: $labels }
provisioner: $driver
parameters: $parameters
reclaimPolicy: Delete
volumeBindingMode: WaitForFirstConsumer
)";

constexpr const char* kVolume = R"(
apiVersion: v1
kind: PersistentVolume
metadata: { name: $name, labels: $labels }
spec:
  capacity: { storage: $size }
  accessModes: [$access]
  persistentVolumeReclaimPolicy: Retain
  volumeMode: Filesystem
  claimRef: { namespace: $namespace, name: $name }
  csi: { driver: $driver, volumeHandle: $handle, volumeAttributes: $attributes }
)";

// Rounded up to whole GiB, GKE's unit.
std::string size_of(const VolumeSpec& volume) {
  return fmt::format("{}Gi", (volume.size->count() + kGiB.count() - 1) / kGiB.count());
}

class Storage {
 public:
  Storage(const KubernetesJob& k, PodParts& parts) : k_(k), parts_(parts) {}

  void add(const std::string& path, const VolumeSpec& volume) {
    const std::string name = fmt::format("volume-{}", n_++);
    object_ = k_.job.run + "-" + name;
    parts_.mount(name, path, volume.read_only, source_of(path, volume));
  }

 private:
  void refuse(const std::string& path, const std::string& what, const char* hint, ErrorKind kind = ErrorKind::invalid) {
    parts_.wrong.push_back(key_error(kind, "volumes", "{}: {}", path, what).hinted(hint));
  }

  Node source_of(const std::string& path, const VolumeSpec& volume) {
    if (volume.open()) {
      refuse(path, "its tier and size follow from the feed of a plan", "filestore: zonal with a size");
      return {};
    }
    switch (volume.kind) {
      case Kind::claim: return claim(path, volume);
      case Kind::nfs: return nfs(path, volume);
      case Kind::bucket: return bucket(path, volume);
      case Kind::image: return image(path, volume);
      case Kind::filestore:
        return made("filestore.csi.storage.gke.io", filestore_tier(volume.of), volume, "ReadWriteMany");
      case Kind::hyperdisk:
        if (!k_.job.alone())
          refuse(path,
                 fmt::format("one node writes a disk, and here are {}{}", k_.job.nodes.most,
                             k_.job.replicas ? ": a new version of a server starts beside the old one" : ""),
                 "filestore, lustre, or a claim that many can mount");
        return made("pd.csi.storage.gke.io", "hyperdisk-" + volume.of, volume, "ReadWriteOnce");
      case Kind::lustre: return lustre(path, volume);
      case Kind::parallelstore: return volume.made() ? new_parallelstore(volume) : parallelstore(path, volume);
      case Kind::local_ssd: return local_ssd(volume);
      case Kind::cheapest: break;
    }
    return {};
  }

  Node claimed(const std::string& name) {
    return Node::map({{"persistentVolumeClaim", Node::map({{"claimName", name}})}});
  }

  Node claim(const std::string& path, const VolumeSpec& volume) {
    const Result<std::string> label = dns_label(volume.of, 63, "a claim");
    if (!label.ok() || *label != volume.of)
      refuse(path, fmt::format("'{}' is no name of a claim", volume.of), "lower-case letters, digits and '-'");
    if (volume.size)
      add_claim(volume.of, volume.of_class, "", volume, k_.job.alone() ? "ReadWriteOnce" : "ReadWriteMany");
    return claimed(volume.of);
  }

  Node nfs(const std::string& path, const VolumeSpec& volume) {
    const std::size_t colon = volume.of.find(':');
    const std::string server = volume.of.substr(0, colon);
    if (colon == volume.of.npos || !volume.of.substr(colon + 1).starts_with('/') || server.find('.') == server.npos)
      refuse(path, fmt::format("'{}' is no SERVER:/PATH; a server is an address or a dotted name", volume.of),
             "nfs: \"10.0.0.2:/vol1\"");
    Node source = Node::map({{"server", server}, {"path", colon == volume.of.npos ? "" : volume.of.substr(colon + 1)}});
    if (volume.read_only) source.set("readOnly", true);
    return Node::map({{"nfs", std::move(source)}});
  }

  // Mounted by a sidecar that GKE inserts if the pod requests it.
  Node bucket(const std::string& path, const VolumeSpec& volume) {
    const bool plain = volume.of.size() >= 3 && volume.of.size() <= 63 && std::ranges::all_of(volume.of, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                       });
    if (!plain) refuse(path, fmt::format("'{}' is no name of a bucket", volume.of), "bucket: NAME, without gs://");
    parts_.annotations.set("gke-gcsfuse/volumes", "true");
    Node csi = Node::map({{"driver", "gcsfuse.csi.storage.gke.io"}});
    if (volume.read_only) csi.set("readOnly", true);
    csi.set("volumeAttributes",
            Node::map({{"bucketName", volume.of}, {"mountOptions", "implicit-dirs,uid=10001,gid=10001"}}));
    return Node::map({{"csi", std::move(csi)}});
  }

  // Its files are the volume, as the cluster's nodes pull them (Kubernetes 1.35, or 1.31 with the gate ImageVolume).
  Node image(const std::string& path, const VolumeSpec& volume) {
    if (const Status named = check_image(volume.of); !named.ok())
      refuse(path, named.error().message, "image: REGISTRY/NAME@sha256:DIGEST");
    return Node::map({{"image", Node::map({{"reference", volume.of}, {"pullPolicy", "IfNotPresent"}})}});
  }

  static std::string filestore_tier(const std::string& tier) {  // the driver's name of the tier
    return tier == "basic-hdd" ? "standard" : tier == "basic-ssd" ? "premium" : tier;
  }

  Node made(const char* driver, const std::string& type, const VolumeSpec& volume, const char* access) {
    const bool disk = volume.kind == Kind::hyperdisk;
    Node parameters = Node::map({{disk ? "type" : "tier", type}});
    parts_.objects.push_back(fill(
        kClass, {{"name", object_}, {"labels", k_.labels}, {"driver", driver}, {"parameters", std::move(parameters)}}));
    add_claim(object_, object_, "", volume, access);
    return claimed(object_);
  }

  Node lustre(const std::string& path, const VolumeSpec& volume) {
    const std::size_t slash = volume.address.find('/');
    if (slash == volume.address.npos)
      refuse(path, fmt::format("'{}' is no IP/FILESYSTEM", volume.address), "address: 10.0.0.2/lfs");
    return there(path, "lustre.csi.storage.gke.io", volume.of,
                 Node::map({{"ip", volume.address.substr(0, slash)},
                            {"filesystem", slash == volume.address.npos ? "" : volume.address.substr(slash + 1)}}),
                 volume);
  }

  Node parallelstore(const std::string& path, const VolumeSpec& volume) {
    parts_.annotations.set("gke-parallelstore/volumes", "true");
    const std::string project = volume.of.substr(0, volume.of.find('/'));
    const std::string network = volume.network.empty() ? "default" : volume.network;
    return there(path, "parallelstore.csi.storage.gke.io", volume.of + "/default-pool/default-container",
                 Node::map({{"accessPoints", volume.address},
                            {"network", fmt::format("projects/{}/global/networks/{}", project, network)}}),
                 volume);
  }

  // As in GKE's own page on Parallelstore volumes that are provisioned for a claim: the class names the driver alone.
  Node new_parallelstore(const VolumeSpec& volume) {
    parts_.annotations.set("gke-parallelstore/volumes", "true");
    parts_.objects.push_back(fill(kClass, {{"name", object_},
                                           {"labels", k_.labels},
                                           {"driver", "parallelstore.csi.storage.gke.io"},
                                           {"parameters", Node()}}));
    add_claim(object_, object_, "", volume, "ReadWriteMany");
    return claimed(object_);
  }

  Node there(const std::string& path, const char* driver, std::string handle, Node attributes,
             const VolumeSpec& volume) {
    if (std::ranges::count(volume.of, '/') != 2)
      refuse(path, fmt::format("'{}' is no PROJECT/ZONE/INSTANCE", volume.of), "as in my-project/us-central1-a/fast");
    const char* access = volume.read_only ? "ReadOnlyMany" : "ReadWriteMany";
    parts_.objects.push_back(fill(kVolume, {{"name", object_},
                                            {"namespace", k_.space},
                                            {"labels", k_.labels},
                                            {"size", size_of(volume)},
                                            {"access", access},
                                            {"driver", driver},
                                            {"handle", std::move(handle)},
                                            {"attributes", std::move(attributes)}}));
    parts_.objects.back() = with_empty_class(std::move(parts_.objects.back()));
    add_claim(object_, "", object_, volume, access);
    return claimed(object_);
  }

  // "" means no class, unlike an absent key, which means the cluster's default.
  static Node with_empty_class(Node object) {
    Node spec = *object.find("spec");
    return object.set("spec", spec.set("storageClassName", ""));
  }

  void add_claim(const std::string& name, const std::string& of_class, const std::string& volume_name,
                 const VolumeSpec& volume, const char* access) {
    Node made = fill(kClaim, {{"name", name},
                              {"namespace", k_.space},
                              {"labels", k_.labels},
                              {"access", access},
                              {"class", of_class.empty() ? Node() : Node(of_class)},
                              {"volume", volume_name.empty() ? Node() : Node(volume_name)},
                              {"size", size_of(volume)}});
    parts_.objects.push_back(volume_name.empty() ? std::move(made) : with_empty_class(std::move(made)));
  }

  Node local_ssd(const VolumeSpec& volume) {
    parts_.selector.set("cloud.google.com/gke-ephemeral-storage-local-ssd", "true");
    Node empty = Node::map();
    if (volume.size) {
      empty.set("sizeLimit", size_of(volume));
      for (Node* of : {&parts_.requests, &parts_.limits}) of->set("ephemeral-storage", size_of(volume));
    }
    return Node::map({{"emptyDir", std::move(empty)}});
  }

  const KubernetesJob& k_;
  PodParts& parts_;
  std::string object_;  // name of the object created for the volume
  int n_ = 0;
};

// A run renames files and locks its folder, and goes on from it in another pod.
void check_folder(const KubernetesJob& k, PodParts& parts) {
  const Workload& w = k.workload();
  for (const auto& [path, volume] : w.volumes) {
    if (!is_in(k.job.folder, path)) continue;
    const auto refuse = [&, &path = path, &volume = volume](const char* why) {
      parts.wrong.push_back(key_error(ErrorKind::unsupported, "folder", "{} is in the {} at {}: {}", k.job.folder,
                                      name_of(volume.kind), path, why)
                                .hinted("folder: in a claim, nfs, filestore, lustre or parallelstore"));
    };
    if (volume.read_only)
      refuse("nothing can be written there");
    else if (volume.kind == Kind::bucket)
      refuse("its files cannot be renamed or locked, and a run's have to be");
    else if (volume.kind == Kind::local_ssd)
      refuse("it ends with its pod");
  }
}

}  // namespace

bool is_held(const Workload& w, const std::string& folder) {
  return std::ranges::any_of(w.claims, [&](const auto& claim) { return is_in(folder, claim.first); }) ||
         std::ranges::any_of(w.volumes, [&](const auto& volume) { return is_in(folder, volume.first); });
}

const VolumeSpec* new_volume_of(const Workload& w, const std::string& folder) {
  const MountedVolume* has_it = volume_of(w.volumes, folder);
  if (has_it == nullptr) return nullptr;
  for (const auto& [path, name] : w.claims)
    if (is_in(folder, path) && path.size() > has_it->first.size()) return nullptr;
  const VolumeSpec& volume = has_it->second;
  return volume.made() ? &volume : nullptr;
}

void add_volumes(const KubernetesJob& k, PodParts& parts) {
  Storage storage(k, parts);
  for (const auto& [path, volume] : k.workload().volumes) {
    const char* taken = is_in(path, "/systole")              ? "is where the files of the run are"
                        : k.workload().claims.contains(path) ? "is in claims, too"
                                                             : nullptr;
    if (taken != nullptr)
      parts.wrong.push_back(key_error(ErrorKind::invalid, "volumes", "{} {}", path, taken).hinted("another path"));
    storage.add(path, volume);
  }
  check_folder(k, parts);
}

}  // namespace systole

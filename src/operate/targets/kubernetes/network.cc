// Fast networks between pods on GKE: NCCL's variables, the interfaces, and for GPUDirect over TCP a daemon beside the
// program. Manifests: GoogleCloudPlatform/container-engine-accelerators, gpudirect-tcpx, gpudirect-tcpxo and
// gpudirect-rdma, at 992db812.
#include <algorithm>

#include "operate/render/network_profile.h"
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

Node host_path(const char* path) { return Node::map({{"hostPath", Node::map({{"path", path}})}}); }

// The cluster chooses its networks' names; these are Google's own.
void add_interfaces(PodParts& parts, int first, const char* network, int first_network, int count) {
  std::string list = "[{\"interfaceName\":\"eth0\",\"network\":\"default\"}";
  for (int i = 0; i < count; ++i)
    list +=
        fmt::format(",\n {{\"interfaceName\":\"eth{}\",\"network\":\"{}{}\"}}", first + i, network, first_network + i);
  parts.annotations.set("networking.gke.io/default-interface", "eth0");
  parts.annotations.set("networking.gke.io/interfaces", list + "]\n");
}

// "A/plugin:v1 ; daemon:v2" in the catalog means A/daemon:v2. It depends on the transport, not on the machine.
Node daemon_image(const RenderFacts& facts, std::string_view transport) {
  const auto found = std::ranges::find_if(
      facts.fabrics, [&](const Fabric& one) { return one.transport.substr(0, one.transport.find(' ')) == transport; });
  CHECK(found != facts.fabrics.end(), "the catalog has no network {}", transport);
  const Fabric& fabric = *found;
  const std::size_t cut = fabric.images.find(" ; "), slash = fabric.images.rfind('/', cut);
  CHECK(cut != std::string::npos && slash != std::string::npos, "the catalog has no daemon of {}", fabric.family);
  return from_catalog(fabric.images.substr(0, slash + 1) + fabric.images.substr(cut + 3), "networks.csv", fabric.dated);
}

// Runs as long as the program. It is root, with the capabilities for steering flows.
constexpr const char* kDaemon = R"(
name: $name
image: $image
restartPolicy: Always
command: $command
env: [{ name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64 }]
securityContext:
  runAsNonRoot: false
  runAsUser: 0
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL], add: $capabilities }
volumeMounts: $mounts
)";

Node mount_at(const char* volume, const char* path) { return Node::map({{"name", volume}, {"mountPath", path}}); }

void add_daemon(const char* name, Node image, Node command, Node capabilities, Node mounts, std::string more_devices,
                PodParts& parts) {
  mounts.push(mount_at("nvidia", "/usr/local/nvidia/lib64"));
  mounts.push(mount_at("sys", "/hostsysfs"));
  mounts.push(mount_at("proc-sys", "/hostprocsysfs"));
  parts.init_containers.push(fill(kDaemon, {{"name", name},
                                            {"image", std::move(image)},
                                            {"command", std::move(command)},
                                            {"capabilities", std::move(capabilities)},
                                            {"mounts", std::move(mounts)}}));
  std::string devices;
  for (int gpu = 0; gpu < 8; ++gpu) devices += fmt::format("- path: /dev/nvidia{}\n", gpu);
  parts.annotations.set(fmt::format("devices.gke.io/container.{}", name),
                        devices + "- path: /dev/nvidiactl\n- path: /dev/nvidia-uvm\n" + more_devices);
  const auto volume = [&](const char* of, const char* path) { parts.volumes.push(host_path(path).set("name", of)); };
  parts.mount("nvidia", "/usr/local/nvidia/lib64", true, host_path("/home/kubernetes/bin/nvidia/lib64"));
  volume("sys", "/sys");
  volume("proc-sys", "/proc/sys");
}

void add_tcpx(const RenderFacts& facts, PodParts& parts) {
  add_interfaces(parts, 1, "vpc", 1, 4);
  add_daemon("tcpx-daemon", daemon_image(facts, "GPUDirect-TCPX"),
             Node::sequence({"/tcpgpudmarxd/build/app/tcpgpudmarxd", "--gpu_nic_preset", "a3vm", "--gpu_shmem_type",
                             "fd", "--uds_path", "/run/tcpx", "--setup_param", "--verbose 128 2 0"}),
             Node::sequence({"NET_ADMIN"}), Node::sequence({mount_at("tcpx", "/run/tcpx")}), "", parts);
  parts.mount("tcpx", "/run/tcpx", false, Node::map({{"emptyDir", Node::map()}}));
  parts.capabilities.push("IPC_LOCK");
}

void add_tcpxo(const RenderFacts& facts, PodParts& parts) {
  add_interfaces(parts, 1, "vpc", 1, 8);
  add_daemon("tcpxo-daemon", daemon_image(facts, "GPUDirect-TCPXO"),
             Node::sequence({"/bin/sh", "-c",
                             "chmod 755 /fts/entrypoint_rxdm_container.sh && exec /fts/entrypoint_rxdm_container.sh "
                             "--num_hops=2"}),
             Node::sequence({"NET_ADMIN", "NET_BIND_SERVICE"}), Node::sequence(), "- path: /dev/dmabuf_import_helper\n",
             parts);
  parts.mount("aperture-devices", "/dev/aperture_devices", false, host_path("/dev/aperture_devices"));
  parts.capabilities.push("IPC_LOCK");
}

void add_rdma(int cards, PodParts& parts) {
  add_interfaces(parts, 2, "rdma-", 0, cards);
  parts.mount("gib", "/usr/local/gib", true, host_path("/home/kubernetes/bin/gib"));
  parts.mount("nvidia", "/usr/local/nvidia", true, host_path("/home/kubernetes/bin/nvidia"));
  parts.capabilities.push("IPC_LOCK");
}

constexpr const char* kDomain = R"(
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec: { numNodes: $nodes, channel: { resourceClaimTemplate: { name: $channel } } }
)";

// NVLink between machines: each pod claims a channel of the driver's domain.
void add_domain(const KubernetesJob& k, PodParts& parts) {
  const std::string channel = k.job.run + "-channel";
  parts.objects.push_back(fill(kDomain, {{"name", k.job.run},
                                         {"namespace", k.space},
                                         {"labels", k.labels},
                                         {"nodes", k.job.nodes.most},
                                         {"channel", channel}}));
  parts.resource_claims.push(Node::map({{"name", "domain"}, {"resourceClaimTemplateName", channel}}));
  parts.claims.push(Node::map({{"name", "domain"}}));
}

}  // namespace

void add_network(const KubernetesJob& k, PodParts& parts) {
  const Result<std::optional<NetworkProfile>> found = network_profile(k.ask, k.job, NcclScheduler::kubernetes);
  if (!found.ok()) return parts.wrong.push_back(found.error());
  if (!*found) return;
  const NetworkProfile& profile = **found;
  for (const std::string& warning : profile.warnings) parts.warnings.push_back(warning);
  for (const NcclRow* row : profile.variables)
    parts.env.push(Node::map({{"name", row->variable}, {"value", from_catalog(row->value, "nccl.csv", row->dated)}}));
  parts.before += network_shell(profile);
  switch (profile.kind) {
    case NcclProfile::socket: break;
    case NcclProfile::tcpx: add_tcpx(k.ask.facts, parts); break;
    case NcclProfile::tcpxo: add_tcpxo(k.ask.facts, parts); break;
    case NcclProfile::rdma: add_rdma(8, parts); break;
    case NcclProfile::rdma_mnnvl:
      add_rdma(4, parts);
      add_domain(k, parts);
      break;
  }
}

}  // namespace systole

// Target gke: job.yaml as for any cluster, with GKE's node labels, and the files that create the cluster.
#include <algorithm>

#include "describe/spec/secret.h"
#include "ground/base/errors.h"
#include "ground/base/nearest.h"
#include "operate/render/cluster_job.h"
#include "operate/render/cost.h"
#include "operate/render/names.h"
#include "operate/render/quota_need.h"
#include "operate/render/quote.h"
#include "operate/targets/gke/cluster.h"
#include "operate/targets/kubernetes/manifest.h"
#include "operate/targets/kubernetes/operators.h"
#include "operate/targets/picture.h"

namespace systole {
namespace {

constexpr std::size_t kMostPool = 40, kMostAccount = 30;  // Google's limits, in characters

// Third-party manifests, pinned to a commit or release, so that exactly the reviewed ones are applied.
constexpr const char* kInstallers =
    "-f https://raw.githubusercontent.com/GoogleCloudPlatform/container-engine-accelerators/";
constexpr const char* kCommitOfNccl = "992db81257553607f1477945f1b3219632991829/";
constexpr const char* kDriverOfCos =
    "95efe95c68ca328150b68a21ef8372369c30beb7/nvidia-driver-installer/cos/daemonset-preloaded-latest.yaml";
constexpr const char* kDriverOfUbuntu =
    "e4119927bb1c4000aab38977adcdd4cb62b1c535/nvidia-driver-installer/ubuntu/daemonset-preloaded-R580.yaml";

std::string_view name_of(GkeSpec::Driver driver) {
  return driver == GkeSpec::Driver::latest     ? "LATEST"
         : driver == GkeSpec::Driver::standard ? "DEFAULT"
                                               : "INSTALLATION_DISABLED";
}

// The smallest CPU machine that fits a pod besides what GKE reserves. Null: the catalog has none.
const MachineType* least_machine(const RenderRequest& ask, const ClusterJob& job, std::string_view pattern,
                                 const MachineType* accelerators) {
  const ResourcesSpec& resources = ask.workload.resources;
  const double vcpus = static_cast<double>(resources.threads.value_or(1) * job.ranks_per_node) + 1;
  const double gib = resources.memory ? resources.memory->count() / 0x1p30 * 1.08 + 1 : 0;
  const MachineType* least = nullptr;
  for (const MachineType& type : ask.facts.machines) {
    if (type.kind != MachineKind::cpu || !matches(pattern, type.name) || !type.vcpus || !type.memory_gib) continue;
    if (type.vcpus->least < vcpus || type.memory_gib->least < gib) continue;
    if (accelerators != nullptr && accelerators->vcpus && !accelerators->vcpus->holds(type.vcpus->least)) continue;
    const auto size = [](const MachineType& m) { return std::pair(m.vcpus->least, m.memory_gib->least); };
    if (least == nullptr || size(type) < size(*least)) least = &type;
  }
  return least;
}

// The machine type of a node, by Google's name.
Result<std::string> machine_of(const RenderRequest& ask, const ClusterJob& job) {
  const std::string& own = ask.workload.gke.machine;
  const bool attached = job.machine != nullptr && !job.machine->host.empty();
  if (job.machine != nullptr && !attached) {
    if (own.empty() || own == job.machine->name) return job.machine->name;
    return key_error(ErrorKind::invalid, "gke.machine", "{}, and resources.accelerators are of {}", own,
                     job.machine->name)
        .hinted("leave gke.machine out");
  }
  if (!own.empty()) return own;
  if (job.machine == nullptr && job.gpus_per_node > 0)
    return key_error(ErrorKind::invalid, "resources.gpus_per_node", "{}: GKE has to know which GPUs", job.gpus_per_node)
        .hinted("resources.accelerators: h100:16, in place of gpus_per_node; systole catalog accelerators");
  const MachineType* least =
      least_machine(ask, job, attached ? job.machine->host : "*", attached ? job.machine : nullptr);
  if (least != nullptr) return least->name;
  return error(ErrorKind::not_found, "the catalog has no machine for {} processors and {} a node",
               ask.workload.resources.threads.value_or(1) * job.ranks_per_node,
               ask.workload.resources.memory ? to_string(*ask.workload.resources.memory) : "its memory")
      .hinted("gke.machine: the type that it needs, as n2-standard-64");
}

std::vector<Error> refusals(const RenderRequest& ask, const ClusterJob& job) {
  const GkeSpec& gke = ask.workload.gke;
  std::vector<Error> wrong;
  const auto note = [&](Error e) { wrong.push_back(std::move(e)); };
  if (!is_gcp_project(gke.project))
    note(key_error(ErrorKind::invalid, "gke.project", "'{}' is no project", comment_text(gke.project))
             .hinted("gke: { project: ID }; gcloud projects list"));
  const std::size_t most = kMostAccount - std::string_view("-nodes").size();
  if (!is_gcp_name(gke.cluster, most))
    note(key_error(ErrorKind::invalid, "gke.cluster", "'{}' is no name of a cluster", comment_text(gke.cluster))
             .hinted(fmt::format("up to {} lower-case letters, digits and '-', a letter first; it is made if it is not "
                                 "there",
                                 most)));
  if (!gke.network.empty() && !is_gcp_name(gke.network, most))
    note(key_error(ErrorKind::invalid, "gke.network", "'{}' is no name of a network", comment_text(gke.network))
             .hinted("lower-case letters, digits and '-', a letter first"));
  const bool zone = is_gcp_zone(gke.location), region = is_gcp_region(gke.location);
  if (!zone && !region)
    note(
        key_error(ErrorKind::invalid, "gke.location", "'{}' is neither a zone nor a region", comment_text(gke.location))
            .hinted("gke.location: us-central1-a"));
  if (region && gke.zone.empty())
    note(key_error(ErrorKind::invalid, "gke.zone", "nodes are in one zone of {}", gke.location)
             .hinted(fmt::format("gke.zone: {}-a", gke.location)));
  if (!gke.zone.empty() && (!is_gcp_zone(gke.zone) || (zone && gke.zone != gke.location) ||
                            (region && gcp_region_of(gke.zone) != gke.location)))
    note(key_error(ErrorKind::invalid, "gke.zone", "'{}' is no zone of {}", comment_text(gke.zone), gke.location)
             .hinted("leave gke.zone out, or gke.location: its region"));
  const std::size_t pool = kMostPool - (job.slices > 1 ? 1 + std::to_string(job.slices - 1).size() : 0);
  if (job.run.size() > pool)
    note(error(ErrorKind::invalid, "a run is called '{}', {} characters; a node pool takes {} here", job.run,
               job.run.size(), pool)
             .hinted("--run: a shorter name"));
  if (job.machine != nullptr && job.machine->gke_label.empty() && !job.slice)
    note(error(ErrorKind::unsupported, "{}: GKE has no nodes with it", job.on)
             .hinted("another accelerator: systole catalog machines"));
  if (job.machine != nullptr && matches("a4x-max*", job.machine->name))
    note(error(ErrorKind::unsupported, "{}: how its networks are set up is not known", job.machine->name)
             .hinted("a4x-highgpu-4g"));
  if (job.terms == Provisioning::flex_start && job.device().empty())
    note(key_error(ErrorKind::unsupported, "resources.provisioning", "only nodes with accelerators are waited for")
             .hinted("resources.provisioning: spot or on-demand"));
  for (const auto& [path, volume] : ask.workload.volumes) {
    if (volume.kind == VolumeSpec::Kind::bucket && !is_bucket(volume.of))
      note(key_error(ErrorKind::invalid, "volumes", "'{}' is no name of a bucket", comment_text(volume.of))
               .hinted("3 to 63 lower-case letters, digits, '-', '_' and '.', without 'google'"));
    if (volume.kind == VolumeSpec::Kind::local_ssd)
      note(key_error(ErrorKind::unsupported, "volumes",
                     "{}: the pool that is made has no disks of its machines for pods", comment_text(path))
               .hinted("hyperdisk or filestore; or target kubernetes, and a pool of --ephemeral-storage-local-ssd"));
  }
  if (ask.workload.kubernetes.queued && job.slice)
    note(key_error(ErrorKind::unsupported, "kubernetes.queued", "GKE queues no nodes of TPUs")
             .hinted("resources.provisioning: flex-start, which gives a slice whole"));
  return wrong;
}

// Networks of the GPUs, if there are several machines; by Google's names.
std::vector<GkeNetwork> networks_of(const ClusterJob& job, const std::string& cluster, const std::string& zone) {
  std::vector<GkeNetwork> networks;
  if (job.replicas || job.alone() || job.fabric == nullptr || job.machine == nullptr || job.machine->gpudirect.empty())
    return networks;
  const std::string& transport = job.fabric->transport;
  const std::int64_t cards = job.machine->gpu_nics.value_or(job.fabric->nics.value_or(0));
  const std::int64_t mtu = std::atoll(job.fabric->mtu.c_str());
  const auto range = [](std::int64_t n) { return fmt::format("192.168.{}.0/24", n); };
  if (transport.find("TCPX") != transport.npos) {
    for (std::int64_t n = 1; n <= cards; ++n) {
      const std::string name = fmt::format("{}-gpu-{}", cluster, n);
      networks.push_back({name, "", mtu, {{name, range(n), fmt::format("vpc{}", n)}}});
    }
  } else if (transport.find("RDMA") != transport.npos) {
    const std::string host = cluster + "-host", rdma = cluster + "-rdma";
    networks.push_back({host, "", mtu, {{host, range(1), "gvnic-1"}}});
    networks.push_back({rdma, zone + "-vpc-roce", mtu, {}});
    for (std::int64_t n = 0; n < cards; ++n)
      networks.back().subnets.push_back({fmt::format("{}-{}", rdma, n), range(n + 2), fmt::format("rdma-{}", n)});
  }
  return networks;
}

bool needs_hyperdisk(const std::string& machine) {
  return matches("a3-ultra*", machine) || matches("a4*", machine) || matches("tpu7*", machine);
}

std::vector<GkePool> pools_of(const RenderRequest& ask, const ClusterJob& job, const std::string& machine) {
  GkePool pool;
  pool.name = job.run;
  pool.machine = machine;
  pool.device = job.device();
  pool.devices = job.devices_per_node();
  if (job.gpus_per_node > 0) {
    pool.gpu = job.machine->gke_label;
    pool.gpus = job.gpus_per_node;
  }
  pool.queued = ask.workload.kubernetes.queued;
  pool.terms = pool.queued ? Provisioning::flex_start : job.terms.value_or(Provisioning::on_demand);
  pool.reservation = job.reservation;
  pool.arm = job.machine != nullptr && job.machine->arch == "arm64";
  if (needs_hyperdisk(machine)) pool.disk = "hyperdisk-balanced";
  const bool whole = job.slice && !job.replicas;  // all hosts of a slice; servers have a slice each
  pool.nodes = whole ? job.slice->hosts : job.nodes.least;
  const std::int64_t most = whole ? job.slice->hosts : job.nodes.most;
  if (job.nodes.elastic()) pool.least = job.nodes.least, pool.most = most;
  if (pool.terms == Provisioning::flex_start) {  // they start when they are granted, and end when unused
    pool.nodes = pool.least = 0;
    pool.most = most;
  }
  pool.compact = !job.replicas && !job.alone() && job.fabric != nullptr && pool.terms != Provisioning::flex_start &&
                 job.fabric->placement.starts_with("compact");
  if (!job.slice) return {pool};
  if (job.slice->hosts > 1) pool.topology = job.slice->shape_text();
  if (matches("tpu7*", machine)) {
    pool.topology = job.slice->shape_text();
    pool.policy = fmt::format("{}-{}", job.slice->accelerator, pool.topology);
  }
  std::vector<GkePool> pools;
  for (std::int64_t s = 0; s < job.slices; ++s) {
    pools.push_back(pool);
    if (job.slices > 1) pools.back().name += fmt::format("-{}", s);
  }
  return pools;
}

// Drivers of the mounts, and the Google services behind them. NFS and claims need none; disks have theirs.
void add_storage(const Workload& w, GkeCluster& cluster) {
  constexpr struct {
    VolumeSpec::Kind kind;
    GkeAddon addon;
    const char* service;
  } kAddons[] = {
      {VolumeSpec::Kind::bucket, {"GcsFuseCsiDriver", "gcs_fuse_csi_driver_config"}, "storage"},
      {VolumeSpec::Kind::filestore, {"GcpFilestoreCsiDriver", "gcp_filestore_csi_driver_config"}, "file"},
      {VolumeSpec::Kind::lustre, {"LustreCsiDriver", "lustre_csi_driver_config"}, "lustre"},
      {VolumeSpec::Kind::parallelstore, {"ParallelstoreCsiDriver", "parallelstore_csi_driver_config"}, "parallelstore"},
  };
  for (const auto& [path, volume] : w.volumes) {
    for (const auto& [kind, addon, service] : kAddons) {
      if (volume.kind != kind || std::ranges::find(cluster.addons, addon) != cluster.addons.end()) continue;
      cluster.addons.push_back(addon);
      cluster.services.emplace_back(service);
    }
    if (volume.kind == VolumeSpec::Kind::bucket &&
        std::ranges::find(cluster.buckets, volume.of) == cluster.buckets.end())
      cluster.buckets.push_back(volume.of);
  }
}

void add_secrets(const Workload& w, GkeCluster& cluster) {
  cluster.secrets = std::ranges::any_of(w.secrets, [](const auto& secret) {
    return read_secret_reference(secret.second).value().source == SecretReference::Source::secret_manager;
  });
  if (cluster.secrets) cluster.services.emplace_back("secretmanager");
}

// A region, if the cluster has no zone.
const std::string& zone_of(const GkeSpec& gke) { return gke.zone.empty() ? gke.location : gke.zone; }

GkeCluster cluster_of(const RenderRequest& ask, const ClusterJob& job, const std::string& machine) {
  const Workload& w = ask.workload;
  GkeCluster cluster;
  cluster.run = job.run;
  cluster.project = w.gke.project;
  cluster.name_space = w.kubernetes.name_space;
  cluster.name = w.gke.cluster;
  cluster.location = w.gke.location;
  cluster.zone = zone_of(w.gke);
  cluster.region = gcp_region_of(cluster.zone);
  cluster.network = w.gke.network.empty() ? w.gke.cluster : w.gke.network;
  cluster.driver = name_of(w.gke.driver);
  cluster.image = w.gke.image == GkeSpec::Image::ubuntu ? "UBUNTU_CONTAINERD" : "COS_CONTAINERD";
  cluster.services = {"compute", "container", "iam", "logging", "monitoring"};
  cluster.networks = networks_of(job, cluster.name, cluster.zone);
  cluster.pools = pools_of(ask, job, machine);
  cluster.labels.emplace_back("systole-run", job.run);
  for (const auto& [key, value] : w.labels)
    if (is_gcp_label(key, value)) cluster.labels.emplace_back(key, value);
  if (job.gpus_per_node > 0 && w.gke.driver == GkeSpec::Driver::manual)
    cluster.installers.push_back(kInstallers +
                                 std::string(w.gke.image == GkeSpec::Image::ubuntu ? kDriverOfUbuntu : kDriverOfCos));
  if (cluster.several_networks() && !job.fabric->installer.empty()) {
    const std::string& installer = job.fabric->installer;  // REPOSITORY:PATH
    cluster.installers.push_back(kInstallers + (kCommitOfNccl + installer.substr(installer.find(':') + 1)));
  }
  add_storage(w, cluster);
  add_secrets(w, cluster);
  if (!w.kubernetes.gcp_service_account.empty())
    cluster.identity = {w.kubernetes.gcp_service_account,
                        w.kubernetes.name_space.empty() ? "default" : w.kubernetes.name_space,
                        w.kubernetes.service_account.empty() ? job.run : w.kubernetes.service_account};
  return cluster;
}

void add_operators(const std::string& manifest, GkeCluster& cluster) {
  const std::string lines = "\n" + manifest;
  for (const KubeOperator& one : kKubeOperators)
    for (const std::string_view kind : one.kinds) {
      if (kind.empty() || lines.find(fmt::format("\nkind: {}\n", kind)) == lines.npos) continue;
      if (std::ranges::find(cluster.operators, one.place) == cluster.operators.end())
        cluster.operators.emplace_back(one.place);
    }
}

// Zones in which the catalog has the accelerators; nothing if `zone` is one of them.
std::string elsewhere(const RenderRequest& ask, const ClusterJob& job, const std::string& zone) {
  if (job.machine == nullptr || job.machine->accelerator.empty()) return "";
  std::vector<std::string> zones;
  for (const ZoneRow& row : ask.facts.zones) {
    if (row.accelerator != job.machine->accelerator) continue;
    const auto here = [&](const std::string& pattern) { return matches(pattern, job.machine->name); };
    if (!row.machines.empty() && std::ranges::none_of(row.machines, here)) continue;
    if (row.zone == zone) return "";
    if (std::ranges::find(zones, row.zone) == zones.end()) zones.push_back(row.zone);
  }
  if (zones.size() > 6) zones.resize(6);
  return fmt::format("{}: the catalog knows no {} there; it knows them in {}", zone, job.machine->name,
                     fmt::join(zones, ", "));
}

std::vector<QuotaNeed> quotas_of(const RenderRequest& ask, const ClusterJob& job, const std::string& machine) {
  QuotaSpend nodes{.machine = machine, .terms = job.terms.value_or(Provisioning::on_demand)};
  if (job.machine != nullptr) nodes.accelerator = job.machine->accelerator;
  nodes.machines = job.nodes.most;
  nodes.gpus = job.nodes.most * job.gpus_per_node;
  if (job.slice) nodes.chips = (job.replicas ? job.nodes.most : job.slices) * job.slice->chips;
  return quota_needs(ask.facts.quotas, ask.facts.machines, gke_spends(std::move(nodes)));
}

void tell(const RenderRequest& ask, const GkeCluster& cluster, Rendered& rendered) {
  const std::string place = shell_word(ask.place);
  std::vector<std::pair<std::string, std::string>> commands;
  commands.emplace_back("make", fmt::format("bash {}/cluster.sh", place));
  commands.emplace_back(
      "quotas", fmt::format("gcloud compute regions describe {} --project={} --format='table(quotas)'", cluster.region,
                            cluster.project));
  // This budget includes other spending of the project, and only sends mail; the run stops by itself.
  if (const auto budget = ask.workload.objective.budget)
    commands.emplace_back(
        "budget",
        fmt::format("gcloud billing budgets create --billing-account=\"$(gcloud billing projects describe {0} "
                    "--format='value(billingAccountName.basename())')\" --display-name={1} --budget-amount={2:.2f}USD "
                    "--filter-projects=projects/{0} --threshold-rule=percent=0.5 --threshold-rule=percent=0.9 "
                    "--threshold-rule=percent=1.0",
                    cluster.project, cluster.name, budget->count()));
  for (auto& [what, line] : rendered.commands) {
    if (what == "identity" || what == "namespace") continue;  // cluster.sh does it
    // Uses this cluster, whatever kubectl's current context is.
    for (std::size_t at = line.find("kubectl "); at != line.npos; at = line.find("kubectl ", at + 8))
      line.insert(at + 8, "--context=" + cluster.context() + " ");
    commands.emplace_back(what, line);
  }
  commands.emplace_back("undo", fmt::format("bash {}/undo.sh", place));
  rendered.commands = std::move(commands);
}

}  // namespace

std::vector<QuotaSpend> gke_spends(QuotaSpend nodes) {
  constexpr std::int64_t kNodesAnAddress = 64'512 / 64;  // ports of one of NAT's, and those that it keeps for a node
  nodes.disk_gb = nodes.machines * kGkeBootDiskGb;
  const QuotaSpend system{
      .machine = kGkeSystemMachine, .disk_gb = kGkeBootDiskGb, .addresses = nodes.machines / kNodesAnAddress + 1};
  return {std::move(nodes), system};
}

std::optional<DollarsPerHour> gke_price(const RenderRequest& ask, const ClusterJob& job) {
  const Result<std::string> machine = machine_of(ask, job);
  if (!machine.ok()) return {};
  const std::string& zone = zone_of(ask.workload.gke);
  const JobCost cost = cost_of(ask, job, *machine, std::string(gcp_region_of(zone)), zone);
  return cost.rate(cost.terms ? *cost.terms : cost.each, cost.most);
}

Result<Rendered> render_gke(const RenderRequest& ask, const ClusterJob& job) {
  std::vector<Error> wrong = refusals(ask, job);
  const Result<std::string> machine = machine_of(ask, job);
  if (!machine.ok()) wrong.push_back(machine.error());
  Result<Rendered> pods = render_kubernetes(ask, job);
  if (!pods.ok()) wrong.push_back(pods.error());
  if (!wrong.empty()) return together(std::move(wrong));
  Rendered rendered = std::move(pods).value();
  GkeCluster cluster = cluster_of(ask, job, *machine);
  for (const RenderedFile& file : rendered.files) add_operators(file.text, cluster);
  const std::string made = made_from(ask, job);
  rendered.files.push_back({"cluster.sh", gke_commands(cluster, made), true});
  rendered.files.push_back({"cluster.tf", gke_terraform(cluster, made)});
  if (cluster.several_networks()) rendered.files.push_back({"networks.yaml", gke_networks(cluster, made)});
  rendered.files.push_back({"undo.sh", gke_undo(cluster, made), true});
  tell(ask, cluster, rendered);
  if (std::string said = elsewhere(ask, job, cluster.zone); !said.empty()) rendered.warnings.push_back("gke: " + said);
  for (const auto& [key, value] : ask.workload.labels)
    if (!is_gcp_label(key, value))
      rendered.warnings.push_back(fmt::format(
          "labels: {} stays in the cluster: Google takes lower-case letters, digits, '-' and '_'", comment_text(key)));
  const MachineType* type = job.slice ? nullptr : type_named(ask.facts.machines, *machine);
  if (type != nullptr && !type->had_by(job.terms.value_or(Provisioning::on_demand)))
    rendered.warnings.push_back(fmt::format("resources.provisioning: {}: {}", type->name,
                                            type->not_had_by(job.terms.value_or(Provisioning::on_demand))));
  rendered.cost = cost_of(ask, job, *machine, cluster.region, cluster.zone);
  rendered.cost->bounded = ask.workload.kubernetes.queued;
  rendered.cost->besides = {"what GKE takes for the cluster, its system machine, disks and traffic"};
  rendered.quotas = quotas_of(ask, job, *machine);
  rendered.region = cluster.region;
  rendered.drawing = picture_of(
      ask, job,
      {.cluster = fmt::format("GKE cluster {} in {}, project {}", cluster.name, cluster.location, cluster.project),
       .gke = &cluster});
  return rendered;
}

}  // namespace systole

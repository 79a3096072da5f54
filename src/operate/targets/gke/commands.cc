// cluster.sh and undo.sh: gcloud commands. Each checks first whether the resource exists, so an interrupted script can
// be rerun.
#include <fmt/ranges.h>

#include "operate/render/quote.h"
#include "operate/targets/gke/cluster.h"

namespace systole {
namespace {

// One command: words, then options, one per line if there are many.
class Line {
 public:
  Line(const GkeCluster& cluster, std::string words) : text_(std::move(words)) { option("project", cluster.project); }
  Line& option(const char* name, std::string_view value) {
    return raw(fmt::format("--{}={}", name, shell_word(value)));
  }
  Line& count(const char* name, std::int64_t value) { return raw(fmt::format("--{}={}", name, value)); }
  Line& flag(const char* name) { return raw(fmt::format("--{}", name)); }
  std::string text() const {
    constexpr std::size_t kMost = 118;
    std::string one = text_;
    for (const std::string& option : options_) one += " " + option;
    if (one.size() <= kMost) return one;
    return fmt::format("{} \\\n  {}", text_, fmt::join(options_, " \\\n  "));
  }

 private:
  Line& raw(std::string option) {
    options_.push_back(std::move(option));
    return *this;
  }
  std::string text_;
  std::vector<std::string> options_;
};

// The gcloud field that names the run that created a resource.
constexpr std::string_view kByDescription = "description", kByClusterLabel = "resourceLabels.systole-made-by",
                           kByPoolLabel = "config.resourceLabels.systole-run";

// `describe` and `create` of a resource, with the options of each.
class Thing {
 public:
  Thing(const GkeCluster& cluster, const std::string& kind, const std::string& name)
      : describe(cluster, fmt::format("gcloud {} describe {}", kind, shell_word(name))),
        create(cluster, fmt::format("gcloud {} create {}", kind, shell_word(name))),
        what_(kind + " " + name),
        mark_(cluster.mark()) {}
  Thing& in(const char* name, std::string_view value) {
    describe.option(name, value);
    create.option(name, value);
    return *this;
  }
  // Accepts an existing resource, whoever owns it.
  std::string text() const { return "there " + describe.text() + " ||\n  " + create.text() + "\n"; }
  // Uses an existing resource that this run did not create only with permission.
  std::string text_of_ours(std::string_view by = kByDescription) {
    if (by == kByDescription) create.option("description", mark_);
    return owned(what_, describe, by) + " ||\n  " + create.text() + "\n";
  }
  static std::string owned(const std::string& what, Line describe, std::string_view by) {
    return fmt::format("ours {} {}", shell_word(what), describe.option("format", fmt::format("value({})", by)).text());
  }
  Line describe, create;

 private:
  std::string what_, mark_;
};

std::string joined_labels(const GkeCluster& cluster, bool of_run = true) {
  std::vector<std::string> labels;
  for (const auto& [key, value] : of_run ? cluster.labels : cluster.shared_labels())
    labels.push_back(key + "=" + value);
  return fmt::format("{}", fmt::join(labels, ","));
}

// "Not found" in the words of gcloud's command groups. An expired token, a missing permission or a network failure
// prints something else; then the resource must be neither created nor treated as deleted.
constexpr const char* kThere =
    R"sh(errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
there() { # whether what a command describes is there, and $said what it says; ends the script where nobody knows
  said=$("$@" 2>"$errors") && return
  case $(cat "$errors") in
  *NOT_FOUND* | *'was not found'* | *'could not be found'* | *'does not exist'*) return 1 ;;
  *'code=404'* | *'HTTPError 404'* | *' not found: 404'* | *'NAT '*' not found'*) return 1 ;;
  esac
  cat "$errors" >&2
  exit 3
}
made_here() { # whether it said that this run made it: a label's value, or a description
  [ "${said#systole-made-by=}" = "$run" ]
}
)sh";

constexpr const char* kAccept = R"sh(accept=
case ${1:-} in
'') ;;
--accept-existing) accept=yes ;;
*)
  echo "usage: bash $0 [--accept-existing]" >&2
  exit 2
  ;;
esac
ours() { # WHAT COMMAND: whether it is there; what this run did not make is used only when told so
  local what=$1
  shift
  there "$@" || return 1
  if made_here || [ -n "$accept" ]; then return; fi
  echo "$what is there, and the run '$run' did not make it" >&2
  echo "  hint: bash $0 --accept-existing uses what is there as it is; or other names: gke.cluster, gke.network, --run" >&2
  exit 1
}
)sh";

constexpr const char* kLeave = R"sh(all=
case ${1:-} in
'') ;;
--all) all=yes ;;
*)
  echo "usage: bash $0 [--all]" >&2
  exit 2
  ;;
esac
left=()
tell() { # what was not taken away, and clean up
  rm -f "$errors"
  [ ${#left[@]} = 0 ] || printf 'left as it is: %s\n' "${left[@]}"
}
trap tell EXIT
ours() { # WHAT COMMAND: whether it is there and this run made it; what others made is told at the end
  local what=$1
  shift
  there "$@" || return 1
  made_here && return
  left+=("$what, which the run '$run' did not make")
  return 1
}
)sh";

std::string head(const GkeCluster& cluster, const std::string& made, const char* what, const char* arguments) {
  return fmt::format(
      "#!/bin/bash\n{}# {}\nset -euo pipefail\n"
      "account=$(gcloud auth list --filter=status:ACTIVE --format='value(account)')\n"
      "if [ -z \"$account\" ]; then\n  echo 'gcloud knows no account: gcloud auth login' >&2\n  exit 3\nfi\n"
      "run={}\n{}{}",
      made, what, shell_word(cluster.run), kThere, arguments);
}

std::string services(const GkeCluster& cluster) {
  std::string words = "gcloud services enable";
  for (const std::string& api : cluster.services) words += " " + api + ".googleapis.com";
  return Line(cluster, words).text() + "\n";
}

std::string own_network(const GkeCluster& c) {
  Thing network(c, "compute networks", c.network);
  network.create.option("subnet-mode", "custom");
  Thing subnet(c, "compute networks subnets", c.network);
  subnet.in("region", c.region);
  subnet.create.option("network", c.network).option("range", kGkeNodeRange);
  subnet.create.option("secondary-range", fmt::format("pods={},services={}", kGkePodRange, kGkeServiceRange));
  subnet.create.flag("enable-private-ip-google-access");
  Thing router(c, "compute routers", c.network);
  router.in("region", c.region).create.option("network", c.network);
  Thing nat(c, "compute routers nats", c.network);
  nat.in("region", c.region).in("router", c.network);
  nat.create.flag("auto-allocate-nat-external-ips").flag("nat-all-subnet-ip-ranges");
  Thing inside(c, "compute firewall-rules", c.network + "-inside");
  inside.create.option("network", c.network).option("direction", "INGRESS").option("allow", "tcp,udp,icmp");
  inside.create.option("source-ranges", fmt::format("{},{}", kGkeNodeRange, kGkePodRange));
  return "\n# Its own network: nodes have no address of the internet; they reach it through NAT, and Google "
         "directly.\n" +
         network.text_of_ours() + subnet.text_of_ours() + router.text_of_ours() + nat.text() + inside.text_of_ours();
}

std::string more_networks(const GkeCluster& c) {
  std::string text;
  for (const GkeNetwork& each : c.networks) {
    Thing network(c, "compute networks", each.name);
    network.create.option("subnet-mode", "custom").count("mtu", each.mtu);
    if (!each.profile.empty()) network.create.option("network-profile", each.profile);
    text += network.text_of_ours();
    for (const GkeNetwork::Subnet& sub : each.subnets) {
      Thing subnet(c, "compute networks subnets", sub.name);
      subnet.in("region", c.region).create.option("network", each.name).option("range", sub.range);
      text += subnet.text_of_ours();
    }
    if (!each.profile.empty()) continue;  // a VPC for RDMA does not allow such rules
    Thing inside(c, "compute firewall-rules", each.name + "-inside");
    inside.create.option("network", each.name).option("direction", "INGRESS").option("allow", "tcp,udp,icmp");
    inside.create.option("source-ranges", kGkeMoreRange);
    text += inside.text_of_ours();
  }
  return text.empty() ? ""
                      : "\n# What GPUs of several machines tell each other goes over networks of its own.\n" + text;
}

std::string node_account(const GkeCluster& c) {
  Thing account(c, "iam service-accounts", c.account_email());
  account.create = Line(c, "gcloud iam service-accounts create " + shell_word(c.account()));
  account.create.option("display-name", "nodes of " + c.name);
  // Granting a role twice is harmless.
  Line role(c, "gcloud projects add-iam-policy-binding " + shell_word(c.project));
  role.option("member", "serviceAccount:" + c.account_email());
  role.option("role", "roles/container.defaultNodeServiceAccount").option("condition", "None");
  std::string text = "\n# Nodes may write logs and metrics and read images, no more.\n" + account.text_of_ours() +
                     role.text() + " >/dev/null\n";
  return text;
}

std::string the_cluster(const GkeCluster& c) {
  Thing cluster(c, "container clusters", c.name);
  cluster.in("location", c.location);
  Line& create = cluster.create;
  if (c.location != c.zone) create.option("node-locations", c.zone);
  create.option("release-channel", "regular").option("machine-type", kGkeSystemMachine).count("num-nodes", 1);
  create.count("disk-size", kGkeBootDiskGb);
  create.flag("enable-ip-alias").flag("enable-private-nodes");
  create.option("network", c.network).option("subnetwork", c.network);
  create.option("cluster-secondary-range-name", "pods").option("services-secondary-range-name", "services");
  create.option("workload-pool", c.project + ".svc.id.goog").option("workload-metadata", "GKE_METADATA");
  create.option("service-account", c.account_email());
  create.flag("enable-dataplane-v2");  // enforces network policies
  if (c.several_networks()) create.flag("enable-multi-networking");
  std::vector<const char*> addons;
  for (const GkeAddon& addon : c.addons) addons.push_back(addon.gcloud);
  if (c.secrets) create.flag("enable-secret-manager");
  if (!addons.empty()) create.option("addons", fmt::format("{}", fmt::join(addons, ",")));
  create.option("labels", joined_labels(c, false));
  return "\n" + cluster.text_of_ours(kByClusterLabel);
}

std::string accelerator(const GkeCluster& c, const GkePool& pool) {
  const char* driver = c.driver == "LATEST" ? "latest" : c.driver == "DEFAULT" ? "default" : "disabled";
  return fmt::format("type={},count={},gpu-driver-version={}", pool.gpu, pool.gpus, driver);
}

std::string the_pool(const GkeCluster& c, const GkePool& pool) {
  std::string text;
  if (!pool.policy.empty()) {
    Thing policy(c, "compute resource-policies", pool.policy);
    policy.create = Line(c, "gcloud compute resource-policies create workload-policy " + shell_word(pool.policy));
    policy.in("region", c.region);
    policy.create.option("type", "HIGH_THROUGHPUT").option("accelerator-topology", pool.topology);
    text += policy.text_of_ours();
  }
  Thing thing(c, "container node-pools", pool.name);
  thing.in("cluster", c.name).in("location", c.location);
  Line& create = thing.create;
  create.option("node-locations", c.zone).option("machine-type", pool.machine);
  if (pool.gpus > 0) create.option("accelerator", accelerator(c, pool));
  if (!pool.topology.empty()) create.option("tpu-topology", pool.topology);
  if (!pool.policy.empty()) create.option("placement-policy", pool.policy);
  create.count("num-nodes", pool.nodes);
  if (pool.autoscaled()) create.flag("enable-autoscaling").count("min-nodes", pool.least).count("max-nodes", pool.most);
  switch (pool.terms) {
    case Provisioning::spot:
      create.flag("spot").option("node-taints", "cloud.google.com/gke-spot=true:NoSchedule");
      break;
    case Provisioning::flex_start:
      create.flag("flex-start").option("location-policy", "ANY");
      create.option("reservation-affinity", "none").flag("no-enable-autorepair");
      break;
    case Provisioning::reservation:
      create.option("reservation-affinity", "specific").option("reservation", pool.reservation);
      break;
    default: break;
  }
  if (pool.queued) create.flag("enable-queued-provisioning");
  if (pool.compact) create.option("placement-type", "COMPACT");
  if (pool.gpus > 0) create.flag("enable-gvnic");
  for (const GkeNetwork& network : c.networks)
    for (const GkeNetwork::Subnet& subnet : network.subnets)
      create.option("additional-node-network", fmt::format("network={},subnetwork={}", network.name, subnet.name));
  if (!pool.disk.empty()) create.option("disk-type", pool.disk);
  create.count("disk-size", kGkeBootDiskGb);
  create.option("image-type", c.image);
  create.option("service-account", c.account_email()).option("workload-metadata", "GKE_METADATA");
  create.option("labels", joined_labels(c));
  return text + thing.text_of_ours(kByPoolLabel);
}

// Parts of uploads that were broken off, and versions that were replaced, are paid for until something deletes them.
std::string bucket_lifecycle() {
  return fmt::format(R"({{"rule": [
  {{"action": {{"type": "AbortIncompleteMultipartUpload"}}, "condition": {{"age": {}}}}},
  {{"action": {{"type": "Delete"}}, "condition": {{"daysSinceNoncurrentTime": {}}}}}
]}})",
                     kUploadDays, kNoncurrentDays);
}

std::string buckets(const GkeCluster& c) {
  std::string text;
  for (const std::string& bucket : c.buckets) {
    Thing thing(c, "storage buckets", "gs://" + bucket);
    thing.create.option("location", c.region).flag("uniform-bucket-level-access").flag("public-access-prevention");
    thing.create.option("lifecycle-file", "/dev/stdin");
    Line labels(c, "gcloud storage buckets update " + shell_word("gs://" + bucket));
    labels.option("update-labels", joined_labels(c));
    // An existing one belongs to others: it stays unchanged.
    text += fmt::format("there {} || {{\n  {} <<'END'\n{}\nEND\n  {}\n}}\n", thing.describe.text(), thing.create.text(),
                        bucket_lifecycle(), labels.text());
  }
  return text.empty() ? "" : "\n# What it mounts; nobody reads it by its address.\n" + text;
}

std::string identity(const GkeCluster& c) {
  if (!c.identity) return "";
  Line line(c, "gcloud iam service-accounts add-iam-policy-binding " + shell_word(c.identity->google));
  line.option("role", "roles/iam.workloadIdentityUser");
  line.option("member", fmt::format("serviceAccount:{}.svc.id.goog[{}/{}]", c.project, c.identity->name_space,
                                    c.identity->account));
  return "\n# The job is this account to Google, without a key.\n" + line.text() + " >/dev/null\n";
}

std::string inside_of_it(const GkeCluster& c) {
  Line credentials(c, "gcloud container clusters get-credentials " + shell_word(c.name));
  credentials.option("location", c.location);
  std::string text = fmt::format(
      "\n# kubectl knows it from here on; what it spoke to before is what it speaks to afterwards.\n"
      "before=$(command kubectl config current-context 2>/dev/null || true)\n{}\n"
      "[ -z \"$before\" ] || command kubectl config use-context \"$before\" >/dev/null\n"
      "kubectl() {{\n  command kubectl --context={} \"$@\"\n}}\n",
      credentials.text(), shell_word(c.context()));
  if (!c.name_space.empty() && c.name_space != "default")
    text += fmt::format("kubectl get namespace {0} >/dev/null 2>&1 || kubectl create namespace {0}\n", c.name_space);
  if (c.several_networks()) text += "kubectl apply --server-side -f \"$(dirname \"$0\")/networks.yaml\"\n";
  for (const std::string& manifest : c.installers) text += fmt::format("kubectl apply {}\n", manifest);
  for (const std::string& manifest : c.operators) text += fmt::format("kubectl apply --server-side {}\n", manifest);
  for (const GkePool& pool : c.pools) {  // does not wait for nodes that are created later
    if (pool.devices == 0 || pool.nodes == 0) continue;
    std::string key = pool.device;
    key.replace(key.find('.'), 1, "\\.");
    text += fmt::format(
        "kubectl wait node -l cloud.google.com/gke-nodepool={} --timeout=30m \\\n  "
        "--for='jsonpath={{.status.allocatable.{}}}={}'\n",
        pool.name, key, pool.devices);
  }
  return text;
}

}  // namespace

std::string gke_commands(const GkeCluster& c, const std::string& made) {
  std::string text = head(c, made, "Makes the cluster, or what is missing of it; may be run again.", kAccept) +
                     services(c) + own_network(c) + more_networks(c) + node_account(c) + the_cluster(c) +
                     "\n# The nodes of the job.\n";
  for (const GkePool& pool : c.pools) text += the_pool(c, pool);
  return text + buckets(c) + identity(c) + inside_of_it(c);
}

std::string gke_undo(const GkeCluster& c, const std::string& made) {
  // `by`: field that names the creator; empty: it is deleted with its parent.
  const auto remove = [&](const std::string& kind, const std::string& name,
                          const std::vector<std::pair<const char*, std::string>>& in, std::string_view by) {
    Line look(c, fmt::format("gcloud {} describe {}", kind, shell_word(name)));
    Line line(c, fmt::format("gcloud {} delete {} --quiet", kind, shell_word(name)));
    for (const auto& [key, value] : in) {
      look.option(key, value);
      line.option(key, value);
    }
    const std::string asks = by.empty() ? "there " + look.text() : Thing::owned(kind + " " + name, look, by);
    return fmt::format("! {} ||\n  {}\n", asks, line.text());
  };
  const std::string region = c.region;
  std::string text =
      head(c, made, "Takes away the nodes of the job; with --all what else cluster.sh made for this run, and no more.",
           kLeave);
  for (const GkePool& pool : c.pools) {
    text += remove("container node-pools", pool.name, {{"cluster", c.name}, {"location", c.location}}, kByPoolLabel);
    if (!pool.policy.empty())
      text += remove("compute resource-policies", pool.policy, {{"region", region}}, kByDescription);
  }
  text += "[ -n \"$all\" ] || exit 0\n";
  Line look(c, "gcloud container clusters describe " + shell_word(c.name)),
      pools(c, "gcloud container clusters describe " + shell_word(c.name)),
      take(c, fmt::format("gcloud container clusters delete {} --quiet", shell_word(c.name)));
  for (Line* line : {&look, &pools, &take}) line->option("location", c.location);
  pools.option("format", "value(nodePools[].name)");
  text += fmt::format(
      "\n# A cluster in which others have nodes stays, and with it all that it uses.\n"
      "if {}; then\n  others=$({})\n"
      "  others=$(printf '%s\\n' \"$others\" | tr ';' '\\n' | grep -vx -e default-pool -e '' | paste -sd ' ' || true)\n"
      "  if [ -n \"$others\" ]; then\n"
      "    left+=('container clusters {}, in which others have nodes: '\"$others\")\n"
      "  else\n    {}\n  fi\nfi\n"
      "if there {}; then\n"
      "  left+=('its networks, their NAT and rules, and the account of its nodes, which it uses')\n  exit 0\nfi\n\n",
      Thing::owned("container clusters " + c.name, look, kByClusterLabel), pools.text(), c.name, take.text(),
      look.text());
  for (const GkeNetwork& network : c.networks) {
    if (network.profile.empty()) text += remove("compute firewall-rules", network.name + "-inside", {}, kByDescription);
    for (const GkeNetwork::Subnet& subnet : network.subnets)
      text += remove("compute networks subnets", subnet.name, {{"region", region}}, kByDescription);
    text += remove("compute networks", network.name, {}, kByDescription);
  }
  text += remove("compute firewall-rules", c.network + "-inside", {}, kByDescription);
  Line router(c, "gcloud compute routers describe " + shell_word(c.network));
  router.option("region", region);
  text += fmt::format("if {}; then\n", Thing::owned("compute routers " + c.network, router, kByDescription));
  text += remove("compute routers nats", c.network, {{"region", region}, {"router", c.network}}, "");
  text += remove("compute routers", c.network, {{"region", region}}, "") + "fi\n";
  text += remove("compute networks subnets", c.network, {{"region", region}}, kByDescription);
  text += remove("compute networks", c.network, {}, kByDescription);
  Line account(c, "gcloud iam service-accounts describe " + shell_word(c.account_email()));
  Line role(c, "gcloud projects remove-iam-policy-binding " + shell_word(c.project));
  role.option("member", "serviceAccount:" + c.account_email());
  role.option("role", "roles/container.defaultNodeServiceAccount").option("condition", "None");
  text += fmt::format("if {}; then\n{} >/dev/null || true\n{}fi\n",
                      Thing::owned("iam service-accounts " + c.account_email(), account, kByDescription), role.text(),
                      remove("iam service-accounts", c.account_email(), {}, ""));
  for (const std::string& bucket : c.buckets) text += fmt::format("left+=('gs://{}, with what it holds')\n", bucket);
  return text;
}

}  // namespace systole

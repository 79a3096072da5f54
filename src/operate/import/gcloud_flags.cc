#include "operate/import/gcloud_flags.h"

#include <algorithm>

namespace systole {
namespace {

constexpr Flag::Takes kNothing = Flag::Takes::nothing, kValue = Flag::Takes::value, kPerhaps = Flag::Takes::perhaps;
constexpr std::string_view kGke = "systole render --on gke writes clusters and node pools";
constexpr std::string_view kMachines = "it is of machines, and this line makes none";
constexpr std::string_view kWhere = "where is chosen by systole plan --on, and by who makes the machines";
constexpr std::string_view kShown = "it is how gcloud shows things";
constexpr std::string_view kBudget = "a budget is an account's; systole runs shows what a run has cost";
constexpr std::string_view kStorage = "it is of Filestore, and this line makes none: volumes";
constexpr std::string_view kVertex = "it is of a job of Vertex AI, and this line starts none";
constexpr std::string_view kEncrypted = "which key its disks are encrypted with is said where the machines are made";

constexpr Flag kFlags[] = {
    {"zone", '\0', kValue, nullptr, kWhere},
    {"region", '\0', kValue, nullptr, kWhere},
    {"location", '\0', kValue, nullptr, kWhere},
    {"project", '\0', kValue, nullptr, kWhere},
    {"worker", '\0', kValue, nullptr, "the agent starts ranks on all nodes"},
    {"node", '\0', kValue, nullptr, "the agent starts ranks on all nodes"},
    {"cluster", '\0', kValue, nullptr, kGke},
    // gcloud's own behaviour.
    {"limit", '\0', kValue, nullptr, kShown},
    {"format", '\0', kValue, nullptr, kShown},
    {"filter", '\0', kValue, nullptr, kShown},
    {"quiet", 'q', kNothing, nullptr, kShown},
    {"async", '\0', kPerhaps, nullptr, kShown},
    {"user-output-enabled", '\0', kNothing, nullptr, kShown},
    {"verbosity", '\0', kValue, nullptr, kShown},
    {"account", '\0', kValue, nullptr, kShown},
    {"configuration", '\0', kValue, nullptr, kShown},
    {"impersonate-service-account", '\0', kValue, nullptr, kShown},
    // Jobs.
    {"display-name", '\0', kValue, nullptr, kVertex},
    {"worker-pool-spec", '\0', kValue, nullptr, kVertex},
    {"command", '\0', kValue, nullptr, kVertex},
    {"args", '\0', kValue, nullptr, kVertex},
    {"timeout", '\0', kValue, nullptr, kVertex},
    {"python-package-uris", '\0', kValue, nullptr, "the image has the files: systole render --on docker"},
    {"config", '\0', kValue, nullptr, "what that file says is not read"},
    {"kms-key", '\0', kValue, nullptr, kEncrypted},
    {"kms-project", '\0', kValue, nullptr, kEncrypted},
    {"kms-location", '\0', kValue, nullptr, kEncrypted},
    {"kms-keyring", '\0', kValue, nullptr, kEncrypted},
    {"persistent-resource-id", '\0', kValue, nullptr,
     "machines that stay between jobs are a cluster: systole submit --on kubernetes"},
    {"enable-web-access", '\0', kNothing, nullptr, "ranks have no terminal; systole logs shows their lines"},
    {"enable-dashboard-access", '\0', kNothing, nullptr, "nothing of Ray runs; systole runs shows the runs"},
    // Resources other than machines.
    {"billing-account", '\0', kValue, nullptr, kBudget},
    {"budget-amount", '\0', kValue, nullptr, kBudget},
    {"threshold-rule", '\0', kValue, nullptr, kBudget},
    {"file-share", '\0', kValue, nullptr, kStorage},
    {"tier", '\0', kValue, nullptr, kStorage},
};

constexpr Flag kOfMachines[] = {
    {"machine-type", '\0', kValue, nullptr, kMachines},
    {"accelerator", '\0', kValue, nullptr, kMachines},
    {"accelerator-type", '\0', kValue, nullptr, kMachines},
    {"num-nodes", '\0', kValue, nullptr, kMachines},
    {"min-nodes", '\0', kValue, nullptr, kMachines},
    {"max-nodes", '\0', kValue, nullptr, kMachines},
    {"total-min-nodes", '\0', kValue, nullptr, kMachines},
    {"total-max-nodes", '\0', kValue, nullptr, kMachines},
    {"enable-autoscaling", '\0', kNothing, nullptr, kMachines},
    {"provisioning-model", '\0', kValue, nullptr, kMachines},
    {"spot", '\0', kNothing, nullptr, kMachines},
    {"preemptible", '\0', kNothing, nullptr, kMachines},
    {"flex-start", '\0', kNothing, nullptr, kMachines},
    {"reservation", '\0', kValue, nullptr, kMachines},
    {"reservation-affinity", '\0', kValue, nullptr, kMachines},
    {"reserved", '\0', kNothing, nullptr, kMachines},
    {"best-effort", '\0', kNothing, nullptr, kMachines},
    {"node-locations", '\0', kValue, nullptr, kMachines},
    {"location-policy", '\0', kValue, nullptr, kMachines},
    {"type", '\0', kValue, nullptr, kMachines},
    {"topology", '\0', kValue, nullptr, kMachines},
    {"tpu-topology", '\0', kValue, nullptr, kMachines},
    {"version", '\0', kValue, nullptr, kMachines},
    {"range", '\0', kValue, nullptr, kMachines},
    {"data-disk", '\0', kValue, nullptr, kMachines},
    {"internal-ips", '\0', kNothing, nullptr, kMachines},
    {"image", '\0', kValue, nullptr, kMachines},
    {"image-family", '\0', kValue, nullptr, kMachines},
    {"image-project", '\0', kValue, nullptr, kMachines},
    {"image-type", '\0', kValue, nullptr, kMachines},
    {"boot-disk-size", '\0', kValue, nullptr, kMachines},
    {"boot-disk-type", '\0', kValue, nullptr, kMachines},
    {"boot-disk-auto-delete", '\0', kNothing, nullptr, kMachines},
    {"boot-disk-device-name", '\0', kValue, nullptr, kMachines},
    {"create-disk", '\0', kValue, nullptr, kMachines},
    {"disk", '\0', kValue, nullptr, kMachines},
    {"disk-size", '\0', kValue, nullptr, kMachines},
    {"disk-type", '\0', kValue, nullptr, kMachines},
    {"local-ssd", '\0', kValue, nullptr, kMachines},
    {"local-ssd-count", '\0', kValue, nullptr, kMachines},
    {"local-nvme-ssd-block", '\0', kPerhaps, nullptr, kMachines},
    {"ephemeral-storage-local-ssd", '\0', kPerhaps, nullptr, kMachines},
    {"maintenance-policy", '\0', kValue, nullptr, kMachines},
    {"instance-termination-action", '\0', kValue, nullptr, kMachines},
    {"max-run-duration", '\0', kValue, nullptr, kMachines},
    {"restart-on-failure", '\0', kNothing, nullptr, kMachines},
    {"metadata", '\0', kValue, nullptr, kMachines},
    {"metadata-from-file", '\0', kValue, nullptr, kMachines},
    {"labels", '\0', kValue, nullptr, kMachines},
    {"node-labels", '\0', kValue, nullptr, kMachines},
    {"node-taints", '\0', kValue, nullptr, kMachines},
    {"tags", '\0', kValue, nullptr, kMachines},
    {"description", '\0', kValue, nullptr, kMachines},
    {"hostname", '\0', kValue, nullptr, kMachines},
    {"scopes", '\0', kValue, nullptr, kMachines},
    {"no-scopes", '\0', kNothing, nullptr, kMachines},
    {"service-account", '\0', kValue, nullptr, "kubernetes.service_account says it for pods"},
    {"no-service-account", '\0', kNothing, nullptr, kMachines},
    {"network", '\0', kValue, nullptr, kMachines},
    {"subnet", '\0', kValue, nullptr, kMachines},
    {"subnetwork", '\0', kValue, nullptr, kMachines},
    {"network-interface", '\0', kValue, nullptr, kMachines},
    {"network-tier", '\0', kValue, nullptr, kMachines},
    {"network-performance-configs", '\0', kValue, nullptr, kMachines},
    {"nic-type", '\0', kValue, nullptr, kMachines},
    {"address", '\0', kValue, nullptr, kMachines},
    {"no-address", '\0', kNothing, nullptr, kMachines},
    {"can-ip-forward", '\0', kNothing, nullptr, kMachines},
    {"min-cpu-platform", '\0', kValue, nullptr, kMachines},
    {"threads-per-core", '\0', kValue, nullptr, kMachines},
    {"resource-policies", '\0', kValue, nullptr, kMachines},
    {"placement-type", '\0', kValue, nullptr, kMachines},
    {"placement-policy", '\0', kValue, nullptr, kMachines},
    {"deletion-protection", '\0', kNothing, nullptr, kMachines},
    {"shielded-secure-boot", '\0', kNothing, nullptr, kMachines},
    {"shielded-vtpm", '\0', kNothing, nullptr, kMachines},
    {"shielded-integrity-monitoring", '\0', kNothing, nullptr, kMachines},
    {"enable-gvnic", '\0', kNothing, nullptr, kMachines},
    {"enable-ip-alias", '\0', kNothing, nullptr, kMachines},
    {"enable-private-nodes", '\0', kNothing, nullptr, kMachines},
    {"enable-autorepair", '\0', kNothing, nullptr, kMachines},
    {"enable-autoupgrade", '\0', kNothing, nullptr, kMachines},
    {"enable-queued-provisioning", '\0', kNothing, nullptr, kMachines},
    {"additional-node-network", '\0', kValue, nullptr, kMachines},
    {"additional-pod-network", '\0', kValue, nullptr, kMachines},
    {"workload-metadata", '\0', kValue, nullptr, kMachines},
    {"workload-pool", '\0', kValue, nullptr, kMachines},
    {"addons", '\0', kValue, nullptr, kMachines},
    {"release-channel", '\0', kValue, nullptr, kMachines},
    {"cluster-version", '\0', kValue, nullptr, kMachines},
    {"node-version", '\0', kValue, nullptr, kMachines},
    {"max-pods-per-node", '\0', kValue, nullptr, kMachines},
    {"enable-dataplane-v2", '\0', kNothing, nullptr, kMachines},
    {"enable-multi-networking", '\0', kNothing, nullptr, kMachines},
};

}  // namespace

std::span<const Flag> gcloud_flags() { return kFlags; }

std::span<const Flag> gcloud_machine_flags() { return kOfMachines; }

bool is_of_machines(const ParsedFlag& flag) {
  const auto is = [](std::string_view name) {
    return std::ranges::find(kOfMachines, name, &Flag::name) != std::end(kOfMachines);
  };
  return is(flag.name) || (flag.name.starts_with("no-") && is(std::string_view(flag.name).substr(3)));
}

const ParsedFlag* last_flag(const std::vector<ParsedFlag>& seen, std::string_view name) {
  const std::string negated = "no-" + std::string(name);
  const auto found = std::find_if(seen.rbegin(), seen.rend(),
                                  [&](const ParsedFlag& f) { return f.name == name || f.name == negated; });
  return found == seen.rend() || found->name == negated ? nullptr : &*found;
}

}  // namespace systole

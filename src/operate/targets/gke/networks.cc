// networks.yaml: the names by which pods request their GPUs' networks.
#include "ground/base/sourced_yaml.h"
#include "operate/render/template.h"
#include "operate/targets/gke/cluster.h"

namespace systole {
namespace {

constexpr const char* kParameters = R"(
apiVersion: networking.gke.io/v1
kind: GKENetworkParamSet
metadata: { name: $name }
spec: { vpc: $network, vpcSubnet: $subnet, deviceMode: $mode }
)";

constexpr const char* kNetwork = R"(
apiVersion: networking.gke.io/v1
kind: Network
metadata: { name: $name }
spec: { type: Device, parametersRef: { group: networking.gke.io, kind: GKENetworkParamSet, name: $name } }
)";

}  // namespace

std::string gke_networks(const GkeCluster& cluster, const std::string& made) {
  std::string text;
  for (const GkeNetwork& network : cluster.networks) {
    for (const GkeNetwork::Subnet& subnet : network.subnets) {
      const char* mode = network.profile.empty() ? "NetDevice" : "RDMA";
      text += (text.empty() ? made : "---\n");
      text += to_sourced_yaml(fill(
          kParameters, {{"name", subnet.object}, {"network", network.name}, {"subnet", subnet.name}, {"mode", mode}}));
      text += "---\n" + to_sourced_yaml(fill(kNetwork, {{"name", subnet.object}}));
    }
  }
  return text;
}

}  // namespace systole

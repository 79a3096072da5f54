#include "operate/targets/kubernetes/server_routes.h"

#include <algorithm>
#include <cmath>

#include "ground/base/counted.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/render/server_words.h"
#include "operate/render/template.h"

namespace systole {
namespace {

// The certificate is the controller's: behind it requests are plain, inside the cluster.
constexpr const char* kIngress = R"(
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  ingressClassName: $class
  tls: [{ hosts: [$host], secretName: $secret }]
  rules:
    - host: $host
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: $name, port: { name: http } } } }] }
)";

constexpr const char* kGateway = R"(
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  gatewayClassName: $class
  listeners:
    - name: https
      hostname: $host
      port: 443
      protocol: HTTPS
      tls: { mode: Terminate, certificateRefs: [{ kind: Secret, name: $secret }] }
      allowedRoutes: { namespaces: { from: Same } }
)";

constexpr const char* kRoute = R"(
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  parentRefs: [{ name: $name, sectionName: https }]
  hostnames: [$host]
  rules: [{ backendRefs: $backends }]
)";

constexpr const char* kCanaryService = R"(
apiVersion: v1
kind: Service
metadata: { name: $service, namespace: $namespace, labels: $labels }
spec:
  type: ClusterIP
  selector: $pods
  ports: [{ name: http, port: $port, targetPort: $port }]
)";

bool has_canary(const KubernetesJob& k) { return !k.workload().serve.canary.from.empty(); }

Node backend(const std::string& service, std::int64_t weight) {
  return Node::map({{"name", service}, {"port", kServerPort}, {"weight", weight}});
}

void add_gateway(const KubernetesJob& k, PodParts& parts) {
  const ServeSpec& serve = k.workload().serve;
  Node backends;
  if (has_canary(k)) {
    parts.objects.push_back(fill(kCanaryService, {{"service", canary_name(k)},
                                                  {"namespace", k.space},
                                                  {"labels", k.labels},
                                                  {"pods", canary_pods_of(k)},
                                                  {"port", kServerPort}}));
    backends.push(backend(k.job.run, 100 - serve.canary.weight));
    backends.push(backend(canary_name(k), serve.canary.weight));
  } else {
    backends.push(backend(k.job.run, 1));
  }
  parts.objects.push_back(with_place(
      k, kGateway,
      {{"class", serve.ingress.gateway}, {"host", serve.ingress.host}, {"secret", serve.ingress.tls_secret}}));
  parts.objects.push_back(with_place(k, kRoute, {{"host", serve.ingress.host}, {"backends", std::move(backends)}}));
}

// Requests go to all servers alike.
void tell_share(const KubernetesJob& k, PodParts& parts) {
  const std::int64_t newer = canary_servers(k.workload().serve, *k.job.replicas), all = newer + k.job.replicas->least;
  const double share = 100.0 * static_cast<double>(newer) / static_cast<double>(all);
  const std::int64_t weight = k.workload().serve.canary.weight;
  if (std::abs(share - static_cast<double>(weight)) < 1 && !k.job.replicas->elastic()) return;
  parts.warnings.push_back(fmt::format(
      "serve.canary.weight: {}, and {} of {} has {:.0f}% of the requests{}; a Gateway divides them exactly "
      "(serve.ingress.gateway)",
      weight, newer, counted(all, "server"), share, k.job.replicas->elastic() ? ", fewer as servers are added" : ""));
}

}  // namespace

bool routes_by_gateway(const KubernetesJob& k) {
  const IngressSpec& ingress = k.workload().serve.ingress;
  return !ingress.host.empty() && !ingress.gateway.empty();
}

std::string canary_name(const KubernetesJob& k) { return k.job.run + "-canary"; }

Node pods_of(const KubernetesJob& k) { return Node::map({{"systole/run", k.job.run}}); }
Node canary_pods_of(const KubernetesJob& k) { return Node::map({{"systole/run", canary_name(k)}}); }

Node with_place(const KubernetesJob& k, const char* yaml, std::vector<std::pair<std::string, Node>> holes) {
  holes.insert(holes.end(), {{"name", k.job.run}, {"namespace", k.space}, {"labels", k.labels}});
  return fill(yaml, std::move(holes));
}

void add_routes(const KubernetesJob& k, PodParts& parts) {
  const IngressSpec& ingress = k.workload().serve.ingress;
  const auto refuse = [&](ErrorKind kind, const char* key, const std::string& why, const char* hint) {
    parts.wrong.push_back(key_error(kind, key, "{}", why).hinted(hint));
  };
  const auto check_name = [&](const char* key, const std::string& name, const char* of, const char* hint) {
    if (!name.empty() && !is_host_name(name))
      refuse(ErrorKind::invalid, key, fmt::format("'{}' is no name of a {}", comment_text(name), of), hint);
  };
  if (has_canary(k) && !routes_by_gateway(k)) tell_share(k, parts);
  if (ingress.host.empty()) {
    if (!(ingress.tls_secret + ingress.controller + ingress.gateway).empty())
      refuse(ErrorKind::invalid, "serve.ingress.host", "nothing says by which name the servers are reached",
             "serve.ingress: { host: chat.example.org, tls_secret: chat-tls }");
    return;
  }
  if (k.ask.target->provisions.can)
    return refuse(ErrorKind::unsupported, "serve.ingress",
                  "on gke the servers have an internal load balancer's address",
                  "take serve.ingress out, or --on kubernetes");
  if (!is_host_name(ingress.host))
    refuse(ErrorKind::invalid, "serve.ingress.host", fmt::format("'{}' is no host name", comment_text(ingress.host)),
           "lower-case letters, digits, '-' and '.': chat.example.org");
  check_name("serve.ingress.class", ingress.controller, "IngressClass",
             "lower-case letters, digits, '-' and '.': kubectl get ingressclass lists them");
  check_name("serve.ingress.gateway", ingress.gateway, "GatewayClass",
             "lower-case letters, digits, '-' and '.': kubectl get gatewayclass lists them");
  check_name("serve.ingress.tls_secret", ingress.tls_secret, "Secret",
             "lower-case letters, digits, '-' and '.': serve.ingress.tls_secret: chat-tls");
  if (!ingress.gateway.empty() && !ingress.controller.empty())
    refuse(ErrorKind::invalid, "serve.ingress.class", "it is of an Ingress, and serve.ingress.gateway makes a Gateway",
           "take serve.ingress.class out");
  if (ingress.tls_secret.empty())
    return refuse(ErrorKind::invalid, "serve.ingress.tls_secret", "requests show their key, which TLS has to hide",
                  "serve.ingress.tls_secret: NAME; kubectl create secret tls NAME --cert=FILE --key=FILE makes it");
  if (!ingress.gateway.empty()) return add_gateway(k, parts);
  parts.objects.push_back(with_place(k, kIngress,
                                     {{"class", ingress.controller.empty() ? Node() : Node(ingress.controller)},
                                      {"host", ingress.host},
                                      {"secret", ingress.tls_secret}}));
}

}  // namespace systole

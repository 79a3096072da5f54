// Servers on Kubernetes: what a Deployment, its Service and its autoscaler say of each other.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {
namespace {

// On the cluster that a company has.
const std::vector<std::string> kHere = {"serve.from=/runs/gpt2", "serve.replicas=2",
                                        "resources={threads: 4, memory: 4GiB}", "image=registry.example/systole:0.1",
                                        "claims={/runs: runs}"};
// On one that is made for it.
const std::vector<std::string> kMade = {"serve.from=/models/llama",
                                        "serve.replicas=3:6",
                                        "resources.accelerators=g2-standard-12:1",
                                        "image=registry.example/systole:0.1",
                                        "volumes={/models: {bucket: my-models, read_only: true}}",
                                        "kubernetes.gcp_service_account=server@my-lab-7.iam.gserviceaccount.com",
                                        "gke={project: my-lab-7, cluster: serve, location: us-central1-a}"};

Workload small(std::vector<std::string> more = {}) {
  more.insert(more.begin(), kHere.begin(), kHere.end());
  return workload("serve-small.yaml", more);
}
Workload large(std::vector<std::string> more = {}) {
  more.insert(more.begin(), kMade.begin(), kMade.end());
  return workload("serve-8b.yaml", more);
}

std::vector<std::string> command_of(const Node& deployment) {
  std::vector<std::string> words;
  for (const Node& word : at(deployment, "spec.template.spec.containers.0.command").items())
    words.push_back(word.text());
  return words;
}
std::string after(const std::vector<std::string>& words, std::string_view option) {
  const auto found = std::ranges::find(words, option);
  return found == words.end() ? "" : *(found + 1);
}

bool has_kind(const std::vector<Node>& objects, std::string_view kind) {
  return std::ranges::any_of(objects, [&](const Node& o) { return o.find("kind")->text() == kind; });
}

TEST(RenderServer, every_object_is_as_its_official_schema_says) {
  for (const auto& [of, target, count] :
       {std::tuple(small(), "kubernetes", 3u), std::tuple(small({"serve.replicas=1:2"}), "kubernetes", 4u),
        std::tuple(large(), "gke", 8u), std::tuple(large(), "kubernetes", 5u)}) {
    const std::vector<Node> objects = objects_of(of, target);
    EXPECT_EQ(objects.size(), count) << target;
    for (const Node& object : objects) EXPECT_EQ(schemas().wrong(object).value_or(""), "") << to_yaml(object);
  }
  const Node deployment = of_kind(objects_of(small()), "Deployment");
  const std::string container = "spec.template.spec.containers.0.";
  EXPECT_TRUE(schemas().wrong(with(deployment, "spec.strategy.rollingUpdate.maxSurges", 1)));
  EXPECT_TRUE(schemas().wrong(with(deployment, container + "startupProbe.httpGet.port", Node())));
}

TEST(RenderServer, its_ports_selectors_and_times_fit_each_other) {
  for (const auto& [of, target] : {std::pair(small(), "kubernetes"), std::pair(large(), "gke")}) {
    const std::vector<Node> objects = objects_of(of, target);
    const Node& deployment = of_kind(objects, "Deployment");
    const Node &service = of_kind(objects, "Service"), &budget = of_kind(objects, "PodDisruptionBudget");
    const Node& container = at(deployment, "spec.template.spec.containers.0");
    const std::vector<std::string> words = command_of(deployment);
    const std::string port = after(words, "--port");
    EXPECT_EQ(at(service, "spec.ports.0.targetPort").text(), port);
    EXPECT_EQ(at(service, "spec.ports.0.port").text(), port);
    EXPECT_EQ(at(container, "ports.0.containerPort").text(), port);
    for (const char* probe : {"startupProbe", "readinessProbe", "livenessProbe"})
      EXPECT_EQ(at(container, std::string(probe) + ".httpGet.port").text(), port);
    EXPECT_EQ(at(container, "resources.limits.cpu"), at(container, "resources.requests.cpu")) << "its threads";
    const Node& labels = at(deployment, "spec.template.metadata.labels");
    const Node& pods = at(deployment, "spec.selector.matchLabels");
    for (const Node::Entry& label : pods.entries()) EXPECT_EQ(*labels.find(label.key), label.value);
    EXPECT_EQ(at(service, "spec.selector"), pods);
    EXPECT_EQ(at(budget, "spec.selector.matchLabels"), pods);
    const std::string token = after(words, "--token-file");
    EXPECT_TRUE(token.starts_with(at(container, "volumeMounts.0.mountPath").text() + "/")) << token;
    const int drain =
        std::stoi(after(words, "--grace")) + std::stoi(at(container, "lifecycle.preStop.sleep.seconds").text());
    EXPECT_GT(std::stoi(at(deployment, "spec.template.spec.terminationGracePeriodSeconds").text()), drain);
    EXPECT_EQ(at(deployment, "spec.strategy.rollingUpdate.maxUnavailable").text(), "0");
    EXPECT_EQ(at(deployment, "spec.strategy.rollingUpdate.maxSurge").text(), "1");
    const int starts = std::stoi(at(container, "startupProbe.periodSeconds").text()) *
                       std::stoi(at(container, "startupProbe.failureThreshold").text());
    EXPECT_EQ(starts, 600) << "twice 5 minutes";
    EXPECT_GT(std::stoi(at(deployment, "spec.progressDeadlineSeconds").text()), starts);
  }
  const std::vector<Node> slow = objects_of(small({"serve.cold_start=1002ms"}));
  EXPECT_EQ(at(of_kind(slow, "Deployment"), "spec.template.spec.containers.0.startupProbe.failureThreshold").text(),
            "1")
      << "3 s, in probes of 5 s";
}

TEST(RenderServer, starts_the_server_that_was_planned) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(command_of(of_kind(objects_of(small()), "Deployment")),
            (Words{"systole", "serve", "/runs/gpt2", "--name", "serve-small", "--listen", "0.0.0.0", "--port", "8000",
                   "--token-file", "/systole/token/token", "--slots", "4", "--context", "512", "--waiting", "64",
                   "--grace", "30"}));
  const Words large_words = command_of(of_kind(
      objects_of(large({"serve.parameter=i8", "serve.cache=bf16", "serve.prefill_tokens=64"}), "gke"), "Deployment"));
  EXPECT_EQ(after(large_words, "--device"), "gpu");
  EXPECT_EQ(after(large_words, "--weights"), "int8");
  EXPECT_EQ(after(large_words, "--cache-type"), "bf16");
  EXPECT_EQ(after(large_words, "--prefill-tokens"), "64");
  const Words tpu = command_of(of_kind(objects_of(large({"resources.accelerators=v5e:1"}), "gke"), "Deployment"));
  EXPECT_EQ(after(tpu, "--device"), "tpu");
}

// A number in the Deployment would undo what the autoscaler has decided, each time that the file is applied.
TEST(RenderServer, a_range_is_autoscaled_by_the_requests_that_wait) {
  const std::vector<Node> fixed = objects_of(small());
  EXPECT_EQ(at(of_kind(fixed, "Deployment"), "spec.replicas").text(), "2");
  EXPECT_FALSE(has_kind(fixed, "HorizontalPodAutoscaler"));
  for (const auto& [target, metric] : {std::pair("gke", "prometheus.googleapis.com|vllm:num_requests_waiting|gauge"),
                                       std::pair("kubernetes", "vllm:num_requests_waiting")}) {
    const std::vector<Node> ranged = objects_of(large(), target);
    EXPECT_EQ(of_kind(ranged, "Deployment").find("spec")->find("replicas"), nullptr);
    const Node& scaler = of_kind(ranged, "HorizontalPodAutoscaler");
    EXPECT_EQ(at(scaler, "spec.scaleTargetRef.name"), at(of_kind(ranged, "Deployment"), "metadata.name"));
    EXPECT_EQ(at(scaler, "spec.minReplicas").text(), "3");
    EXPECT_EQ(at(scaler, "spec.maxReplicas").text(), "6");
    EXPECT_EQ(at(scaler, "spec.metrics.0.pods.metric.name").text(), metric);
    EXPECT_EQ(at(scaler, "spec.metrics.0.pods.target.averageValue").text(), "4") << "of 8 slots";
  }
}

TEST(RenderServer, nobody_outside_reaches_it_and_collectors_show_its_token) {
  EXPECT_EQ(at(of_kind(objects_of(small()), "Service"), "spec.type").text(), "ClusterIP");
  const std::vector<Node> objects = objects_of(large(), "gke");
  const Node& service = of_kind(objects, "Service");
  EXPECT_EQ(at(service, "spec.type").text(), "LoadBalancer");
  EXPECT_EQ(at(service, "metadata.annotations").find("networking.gke.io/load-balancer-type")->text(), "Internal");
  const Node& monitoring = of_kind(objects, "PodMonitoring");
  EXPECT_EQ(at(monitoring, "spec.endpoints.0.port"),
            at(of_kind(objects, "Deployment"), "spec.template.spec.containers.0.ports.0.name"));
  const std::string secret = at(monitoring, "spec.endpoints.0.authorization.credentials.secret.name").text();
  EXPECT_EQ(secret, "serve-8b-token");
  EXPECT_EQ(at(of_kind(objects, "Role"), "rules.0.resourceNames.0").text(), secret);
  const Rendered made = rendered(large(), nullptr, "gke").value();
  std::string text;
  for (const auto& [what, line] : made.commands) text += what + ": " + line + "\n";
  for (const char* part : {" create secret generic serve-8b-token --from-file=token=/dev/stdin\n",
                           "apply --server-side -f here/serve.yaml\n", "port-forward service/serve-8b 8000\n",
                           "delete deployment,service,horizontalpodautoscaler,poddisruptionbudget,podmonitoring,role,"
                           "rolebinding,serviceaccount -l systole/run=serve-8b\n",
                           "custom-metrics-stackdriver-adapter"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(RenderServer, other_networks_reach_it_by_tls_alone) {
  const std::string ingress = "serve.ingress={host: chat.example.org, tls_secret: chat-tls, class: internal}";
  const std::vector<Node> objects = objects_of(small({ingress}));
  const Node& made = of_kind(objects, "Ingress");
  EXPECT_EQ(schemas().wrong(made).value_or(""), "") << to_yaml(made);
  EXPECT_EQ(at(made, "spec.ingressClassName").text(), "internal");
  EXPECT_EQ(at(made, "spec.tls.0.secretName").text(), "chat-tls");
  EXPECT_EQ(at(made, "spec.tls.0.hosts.0"), at(made, "spec.rules.0.host")) << "no name without TLS";
  const Node& service = of_kind(objects, "Service");
  const std::string backend = "spec.rules.0.http.paths.0.backend.service.";
  EXPECT_EQ(at(made, backend + "name"), at(service, "metadata.name"));
  EXPECT_EQ(at(made, backend + "port.name"), at(service, "spec.ports.0.name"));
  EXPECT_EQ(at(service, "spec.type").text(), "ClusterIP");
  std::string stop;
  for (const auto& [what, line] : rendered(small({ingress})).value().commands)
    if (what == "stop") stop = line;
  EXPECT_NE(stop.find(",ingress -l systole/run=serve-small"), std::string::npos) << stop;
  EXPECT_FALSE(has_kind(objects_of(small()), "Ingress"));
  const auto refused = [&](const std::string& of, const char* target = "kubernetes") {
    std::vector<std::string> sets = std::string_view(target) == "gke" ? kMade : kHere;
    sets.push_back("serve.ingress=" + of);
    return refusals("serve-8b.yaml", sets, target);
  };
  EXPECT_NE(refused("{host: chat.example.org}").find("serve.ingress.tls_secret: requests show their key"),
            std::string::npos);
  EXPECT_NE(refused("{host: 'a/b', tls_secret: t}").find("'a/b' is no host name"), std::string::npos);
  EXPECT_NE(refused("{tls_secret: t}").find("serve.ingress.host: nothing says"), std::string::npos);
  EXPECT_NE(refused("{host: a.b, tls_secret: t}", "gke").find("serve.ingress: on gke"), std::string::npos);
}

// A machine with several devices holds a server on each; a new version needs room beside the old one.
TEST(RenderServer, each_server_has_one_device_and_its_part_of_the_machine) {
  const Workload eight = large({"resources.accelerators=a3-highgpu-8g:1", "serve.replicas=8"});
  const std::vector<Node> objects = objects_of(eight, "gke");
  const Node& pod = at(of_kind(objects, "Deployment"), "spec.template.spec");
  EXPECT_EQ(at(pod, "containers.0.resources.limits").find("nvidia.com/gpu")->text(), "1");
  EXPECT_EQ(at(pod, "nodeSelector").find("cloud.google.com/gke-accelerator-count")->text(), "8") << "as nodes have it";
  const int cpus = std::stoi(at(pod, "containers.0.resources.requests.cpu").text());
  EXPECT_GE(cpus, 20);
  EXPECT_LE(8 * cpus, 208);
  const Rendered made = rendered(eight, nullptr, "gke").value();
  EXPECT_EQ(made.cost->least, 1);
  EXPECT_EQ(made.cost->most, 2) << "the ninth server, of a new version";
  for (const std::string& line : cost_lines(*made.cost)) EXPECT_EQ(line.find("how long it runs"), line.npos) << line;
  const Rendered tpus = rendered(large({"resources.accelerators=v5e:1"}), nullptr, "gke").value();
  EXPECT_EQ(tpus.cost->least, 3);
  EXPECT_EQ(tpus.cost->most, 7);
}

TEST(RenderServer, a_spot_node_gives_a_server_15_seconds) {
  const std::vector<Node> objects = objects_of(large({"resources.provisioning=spot"}), "gke");
  EXPECT_EQ(at(of_kind(objects, "Deployment"), "spec.template.spec.terminationGracePeriodSeconds").text(), "15");
  EXPECT_EQ(after(command_of(of_kind(objects, "Deployment")), "--grace"), "5");
}

TEST(RenderServer, warns_of_a_model_in_a_volume_that_is_made_empty) {
  const auto warnings = [](const std::string& volume) {
    const Workload of = small({"serve.from=/models/gpt2", "volumes={/models: {" + volume + "}}"});
    return fmt::format("{}", fmt::join(rendered(of).value().warnings, "\n"));
  };
  for (const char* made : {"filestore: basic-hdd, size: 1TiB", "claim: models, size: 10GiB"})
    EXPECT_NE(warnings(made).find("serve.from: /models/gpt2 is in a new, empty volume"), std::string::npos) << made;
  for (const char* there : {"claim: models", "nfs: '10.0.0.2:/vol1'", "bucket: my-models, read_only: true"})
    EXPECT_EQ(warnings(there).find("serve.from"), std::string::npos) << there;
}

TEST(RenderServer, refuses_what_would_serve_nobody) {
  const auto refuses = [](const char* target, const std::vector<std::string>& sets, const std::string& part) {
    std::vector<std::string> all = std::string_view(target) == "gke" ? kMade : kHere;
    all.insert(all.end(), sets.begin(), sets.end());
    const std::string said = refusals("serve-8b.yaml", all, target);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  refuses("kubernetes", {"serve.from=null"}, "serve.from: nothing says where the model is in a pod");
  refuses("kubernetes", {"serve.from=runs/gpt2"}, "serve.from: 'runs/gpt2' is no path in a pod");
  refuses("kubernetes", {"serve.replicas=null"}, "serve.replicas: nothing says how many servers there are");
  refuses("kubernetes", {"serve.from=/disk/gpt2", "volumes={/disk: {local_ssd: true}}"},
          "serve.from: /disk/gpt2 is on the machine's disks, which are empty when a server starts");
  refuses("kubernetes", {"serve.replicas=1", "volumes={/disk: {hyperdisk: balanced, size: 10GiB}}"},
          "here are 2: a new version of a server starts beside the old one");
  refuses("kubernetes", {"image=null"}, "image: a pod needs one, with systole in it");
  refuses("gke", {"resources.accelerators=a3-highgpu-8g:2"}, "is 2 machines, and a workload that serves names one");
  refuses("gke", {"resources.accelerators=v5e:2x2"}, "has 4 chips in one slice, and a server computes on one");
  const std::string said = refusals("serve-small.yaml", kHere, "gcloud");
  EXPECT_TRUE(said.starts_with("workload: serve: ")) << said;
  EXPECT_NE(said.find("--on slurm or kubernetes or gke or ssh"), std::string::npos) << said;
}

constexpr const char* kCanary = "serve.canary={from: /runs/gpt2-newer, weight: 20}";

const Node& named(const std::vector<Node>& objects, std::string_view kind, std::string_view name) {
  const auto found = std::ranges::find_if(
      objects, [&](const Node& o) { return o.find("kind")->text() == kind && at(o, "metadata.name").text() == name; });
  CHECK(found != objects.end(), "there is no {} {}", kind, name);
  return *found;
}

TEST(RenderServer, a_canary_is_servers_of_another_model_behind_the_same_service) {
  const Workload of = small({kCanary, "serve.replicas=4"});
  const std::vector<Node> objects = objects_of(of);
  for (const Node& object : objects) EXPECT_EQ(schemas().wrong(object).value_or(""), "") << to_yaml(object);
  const Node& stable = named(objects, "Deployment", "serve-small");
  const Node& newer = named(objects, "Deployment", "serve-small-canary");
  EXPECT_EQ(command_of(stable)[2], "/runs/gpt2");
  EXPECT_EQ(command_of(newer)[2], "/runs/gpt2-newer");
  EXPECT_EQ(after(command_of(newer), "--name"), after(command_of(stable), "--name")) << "requests name one model";
  EXPECT_EQ(at(newer, "spec.replicas").text(), "1") << "one beside four is 20%";
  EXPECT_NE(at(newer, "spec.selector.matchLabels"), at(stable, "spec.selector.matchLabels"));
  const Node& selector = at(named(objects, "Service", "serve-small"), "spec.selector");
  for (const Node* deployment : {&stable, &newer}) {
    const Node& labels = at(*deployment, "spec.template.metadata.labels");
    for (const Node::Entry& label : at(*deployment, "spec.selector.matchLabels").entries())
      EXPECT_EQ(*labels.find(label.key), label.value);
    for (const Node::Entry& label : selector.entries()) EXPECT_EQ(*labels.find(label.key), label.value);
    EXPECT_EQ(at(*deployment, "metadata.labels").find("systole/run")->text(), "serve-small") << "it goes with the rest";
  }
  EXPECT_EQ(fmt::format("{}", fmt::join(rendered(of).value().warnings, "\n")).find("serve.canary"), std::string::npos);
  const std::string warned = fmt::format("{}", fmt::join(rendered(small({kCanary})).value().warnings, "\n"));
  EXPECT_NE(warned.find("serve.canary.weight: 20, and 1 of 3 servers has 33% of the requests"), warned.npos) << warned;
}

TEST(RenderServer, a_gateway_divides_requests_by_weight) {
  const std::string gateway = "serve.ingress={host: chat.example.org, tls_secret: chat-tls, gateway: internal}";
  for (const bool both : {true, false}) {
    const std::vector<Node> objects = objects_of(both ? small({gateway, kCanary}) : small({gateway}));
    for (const Node& object : objects) EXPECT_EQ(schemas().wrong(object).value_or(""), "") << to_yaml(object);
    EXPECT_FALSE(has_kind(objects, "Ingress"));
    const Node& made = of_kind(objects, "Gateway");
    EXPECT_EQ(at(made, "spec.gatewayClassName").text(), "internal");
    EXPECT_EQ(at(made, "spec.listeners.0.tls.certificateRefs.0.name").text(), "chat-tls");
    const Node& route = of_kind(objects, "HTTPRoute");
    EXPECT_EQ(at(route, "spec.parentRefs.0.name"), at(made, "metadata.name"));
    EXPECT_EQ(at(route, "spec.hostnames.0"), at(made, "spec.listeners.0.hostname"));
    const Node& backends = at(route, "spec.rules.0.backendRefs");
    ASSERT_EQ(backends.items().size(), both ? 2u : 1u);
    for (const Node& backend : backends.items()) {
      const Node& service = named(objects, "Service", backend.find("name")->text());
      const Node& deployment = named(objects, "Deployment", backend.find("name")->text());
      EXPECT_EQ(at(service, "spec.selector"), at(deployment, "spec.selector.matchLabels")) << "no server of the other";
      EXPECT_EQ(*backend.find("port"), at(service, "spec.ports.0.port"));
    }
    EXPECT_EQ(backends.items()[0].find("weight")->text(), both ? "80" : "1");
    EXPECT_EQ(backends.items().back().find("weight")->text(), both ? "20" : "1");
    EXPECT_TRUE(schemas().wrong(with(route, "spec.rules.0.backendRefs.0.weights", 1)));
  }
}

TEST(RenderServer, names_of_routes_are_names_of_the_cluster) {
  const auto refused = [&](const std::string& of) {
    std::vector<std::string> sets = kHere;
    sets.push_back("serve.ingress={host: a.b, " + of + "}");
    return refusals("serve-8b.yaml", sets, "kubernetes");
  };
  EXPECT_NE(refused("tls_secret: Chat_TLS").find("serve.ingress.tls_secret: 'Chat_TLS' is no name of a Secret"),
            std::string::npos);
  EXPECT_NE(refused("tls_secret: t, class: 'a/b'").find("serve.ingress.class: 'a/b' is no name of a"),
            std::string::npos);
  EXPECT_NE(refused("tls_secret: t, gateway: 'a b'").find("serve.ingress.gateway: 'a b' is no name of a"),
            std::string::npos);
  EXPECT_NE(refused("tls_secret: t, gateway: g, class: c").find("serve.ingress.class: it is of an Ingress"),
            std::string::npos);
}

TEST(RenderServer, a_model_may_be_in_an_image_of_its_own) {
  const std::string digest = "registry.example/models/gpt2@sha256:" + std::string(64, 'b');
  const auto of = [](const std::string& image) {
    return std::vector<std::string>{"serve.from=/models/gpt2",
                                    "volumes={/models: {image: '" + image + "', read_only: true}}"};
  };
  const Node deployment = of_kind(objects_of(small(of(digest))), "Deployment");
  EXPECT_EQ(schemas().wrong(deployment).value_or(""), "") << to_yaml(deployment);
  EXPECT_NE(to_yaml(deployment).find("reference: \"" + digest), std::string::npos) << to_yaml(deployment);
  std::vector<std::string> sets = kHere;
  for (const std::string& set : of("models/gpt2:latest")) sets.push_back(set);
  EXPECT_NE(refusals("serve-8b.yaml", sets, "kubernetes").find("volumes: /models: "), std::string::npos);
}

}  // namespace
}  // namespace systole

// Rendered servers on a real Kubernetes: all their pods are replaced while they are asked, and no request fails.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ground/net/http_client.h"
#include "laws/kubernetes_cluster.h"

namespace systole {
namespace {

constexpr const char* kModel = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/gpt2";
constexpr const char* kServers =
    "systole: 1\nname: hello\nworkload: serve\n"
    "model: { family: gpt, layers: 2, width: 16, heads: 4, context: 64, vocabulary: 304 }\n"
    "serve: { from: /models/gpt2, replicas: 2, context: 64, traffic: { rate: 1, prompt: 4, answer: 12 } }\n"
    "resources: { threads: 1, memory: 256MiB }\n"
    "image: registry.example/systole@sha256:1111111111111111111111111111111111111111111111111111111111111111\n"
    "claims: { /models: models }\nkubernetes: { selector: { systole.test/pods: run } }\n";
constexpr const char* kClaim =
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: { name: models }\n"
    "spec: { accessModes: [ReadWriteMany], resources: { requests: { storage: 1Gi } } }\n";
constexpr const char* kRequest = R"({"model": "hello", "prompt": "All", "temperature": 0, "max_tokens": 12})";

struct Server {
  std::string pod, address;
};

// As a Service has them: ready, and not on their way out.
std::vector<Server> ready_servers(const Node& pods) {
  std::vector<Server> ready;
  for (const Node& pod : pods.find("items")->items()) {
    const Node &metadata = *pod.find("metadata"), &status = *pod.find("status");
    const Node* conditions = status.find("conditions");
    if (conditions == nullptr || metadata.find("deletionTimestamp") != nullptr) continue;
    if (std::ranges::any_of(conditions->items(), [](const Node& condition) {
          return condition.text_at("type") == "Ready" && condition.text_at("status") == "True";
        }))
      ready.push_back({metadata.text_at("name"), status.text_at("podIP")});
  }
  return ready;
}

// The part of a Service, for which the API server takes no loopback addresses: a request goes to the next of the
// servers that were ready when it last heard of them. Clusters spread that late, too.
class Service {
 public:
  static constexpr std::chrono::milliseconds kLate{1500};

  Service(const HttpTrust& trust, const std::string& api)
      : url_(api + "/api/v1/namespaces/default/pods?labelSelector=systole%2Frun%3Dhello"),
        client_(HttpClient::open(trust).value()),
        thread_([this] { hear(); }) {}
  ~Service() {
    ended_ = true;
    thread_.join();
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::vector<Server> servers() {
    const std::lock_guard lock(mutex_);
    return servers_;
  }
  Server next() {
    const std::lock_guard lock(mutex_);
    return servers_.empty() ? Server{} : servers_[turn_++ % servers_.size()];
  }

 private:
  void hear() {
    while (!ended_) {
      if (const Result<HttpReply> reply = client_->send({.url = url_}); reply.ok() && reply->status == 200) {
        std::vector<Server> ready = ready_servers(parse_json(reply->body, "pods").value());
        const std::lock_guard lock(mutex_);
        servers_ = std::move(ready);
      }
      const auto until = std::chrono::steady_clock::now() + kLate;
      while (!ended_ && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  const std::string url_;
  const std::unique_ptr<HttpClient> client_;
  std::mutex mutex_;
  std::vector<Server> servers_;
  std::size_t turn_ = 0;
  std::atomic<bool> ended_ = false;
  std::thread thread_;  // the last: it uses all others
};

// Asks without a pause until its end.
class Load {
 public:
  Load(Service& service, std::string token, std::string answer)
      : service_(service), token_(std::move(token)), answer_(std::move(answer)) {
    for (int asker = 0; asker < 3; ++asker) askers_.emplace_back([this] { ask(); });
  }
  ~Load() { end(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void end() {
    ended_ = true;
    for (std::thread& asker : askers_)
      if (asker.joinable()) asker.join();
  }
  // Whether each has answered so often.
  bool answered(const std::vector<Server>& servers, int times) {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(servers, [&](const Server& server) { return answered_[server.pod] >= times; });
  }
  std::map<std::string, int> answered() {
    const std::lock_guard lock(mutex_);
    return answered_;
  }
  std::vector<std::string> failures() {
    const std::lock_guard lock(mutex_);
    return failures_;
  }

 private:
  void ask() {
    const std::unique_ptr<HttpClient> client = HttpClient::open({}).value();
    while (!ended_) {
      const Server server = service_.next();
      const std::string wrong = server.pod.empty() ? "none is ready" : wrong_answer(*client, server);
      const std::lock_guard lock(mutex_);
      if (wrong.empty())
        ++answered_[server.pod];
      else
        failures_.push_back(server.pod + ": " + wrong);
      if (failures_.size() > 100) return;
    }
  }
  // Empty: it is as expected.
  std::string wrong_answer(HttpClient& client, const Server& server) const {
    HttpRequest request{.method = "POST", .url = "http://" + server.address + ":8000/v1/completions"};
    request.headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer " + token_}};
    request.body = kRequest;
    request.timeout = Seconds(10.0);
    const Result<HttpReply> reply = client.send(request);
    if (!reply.ok()) return reply.error().message;
    if (reply->status != 200) return fmt::format("{}: {}", reply->status, reply->body);
    const Result<Node> said = parse_json(reply->body, "answer");
    const Node* choices = said.ok() ? said->find("choices") : nullptr;
    if (choices == nullptr || choices->items().size() != 1) return reply->body;
    const std::string text = choices->items()[0].text_at("text");
    return text == answer_ ? "" : fmt::format("'{}' in place of '{}'", text, answer_);
  }

  Service& service_;
  const std::string token_, answer_;
  std::mutex mutex_;
  std::map<std::string, int> answered_;  // by pod
  std::vector<std::string> failures_;
  std::atomic<bool> ended_ = false;
  std::vector<std::thread> askers_;
};

class KubernetesServe : public Kubernetes {
 protected:
  static void SetUpTestSuite() {
    begin("");
    add_nodes({"node-0", "node-1"}, "cpu=4,memory=4Gi", {"--own-ports"});
  }
  void TearDown() override {
    if (IsSkipped() || !missing_.empty() || !HasFailure()) return;
    std::cerr << run("kubectl get pods -o wide; kubectl get events | tail -n 20; kubectl logs -l systole/run=hello "
                     "--tail=20 --prefix; tail -n 20 ../kubelet.log")
                     .out;
  }

  // Renders, and applies with the commands that are printed; the model is in the claim before.
  void start() const {
    write("claim.yaml", kClaim);
    write("servers.yaml", kServers);
    out("kubectl apply -f claim.yaml");
    out("kubectl wait --for='jsonpath={.status.phase}=Bound' pvc/models --timeout=20s");
    const std::string volume = out("kubectl get pvc models -o 'jsonpath={.spec.volumeName}'");
    const std::string held = out("kubectl get pv " + volume + " -o 'jsonpath={.spec.hostPath.path}'");
    out(fmt::format("mkdir -p {0} && cp -r {1} {0}/gpt2", held, kModel));
    const Node made = parse_json(out("\"$SYSTOLE\" --json render servers.yaml --on kubernetes"), "stdout").value();
    for (const char* what : {"token", "start"}) out(made.find("commands")->text_at(what));
  }
  HttpTrust trust() const {
    const std::string keys = (*place_ / "cluster" / "pki").string();
    HttpTrust trust;
    trust.authorities.file = keys + "/ca.crt";
    trust.certificate.file = keys + "/admin.crt";
    trust.key.file = keys + "/admin.key";
    return trust;
  }
  // Those that run or are on their way out.
  std::string pods() const { return run("kubectl get pods -l systole/run=hello -o name").out; }
};

TEST_F(KubernetesServe, both_pods_are_replaced_under_load_and_no_request_fails) {
  start();
  out("kubectl rollout status deployment/hello --timeout=60s");
  const std::string token = out("kubectl get secret hello-token -o 'jsonpath={.data.token}' | base64 -d");
  const std::string generated = out(
      fmt::format("\"$SYSTOLE\" --json generate {} --prompt All --temperature 0 --tokens 12 2>generate.err", kModel));
  const std::string answer = parse_json(generated, "stdout").value().text_at("text");
  ASSERT_NE(answer, "");
  const std::string api = out("kubectl config view -o 'jsonpath={.clusters[0].cluster.server}'");

  Service service(trust(), api);
  ASSERT_TRUE(waits([&] { return service.servers().size() == 2; }, 20));
  const std::vector<Server> before = service.servers();
  Load load(service, token, answer);
  ASSERT_TRUE(waits([&] { return load.answered(before, 20) || !load.failures().empty(); }, 20));

  out("kubectl rollout restart deployment/hello");
  out("kubectl rollout status deployment/hello --timeout=60s");
  // They end by themselves: it takes a kubelet 40 s to kill them.
  const auto gone = [&] {
    const std::string there = pods();
    return std::ranges::none_of(before, [&](const Server& server) { return has(there, server.pod); });
  };
  EXPECT_TRUE(waits(gone, 20)) << pods();
  ASSERT_TRUE(waits([&] { return service.servers().size() == 2; }, 10)) << pods();
  const std::vector<Server> after = service.servers();
  for (const Server& old : before)
    EXPECT_TRUE(std::ranges::none_of(after, [&](const Server& server) { return server.pod == old.pod; })) << old.pod;
  EXPECT_TRUE(waits([&] { return load.answered(after, 20) || !load.failures().empty(); }, 20));
  load.end();
  EXPECT_EQ(load.failures(), std::vector<std::string>());
  for (const auto& [pod, times] : load.answered()) std::cout << pod << ": " << times << " answers\n";
}

}  // namespace
}  // namespace systole

#pragma once
// A stub API server within a test's process: objects by path, the served resources, and scripted replies. It has only
// what tests use; tools/kube starts a real one.

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/net/testing/http_stub.h"
#include "operate/targets/kubernetes/kube_api.h"

namespace systole {

class KubeStub {
 public:
  using Handler = std::function<bool(const StubRequest&, StubAnswer&)>;  // true: it answered

  explicit KubeStub(int port = 0) { start(port); }
  ~KubeStub() { stop(); }

  void start(int port = 0) {
    server_ = std::make_unique<StubServer>(
        [this](const StubRequest& request, StubAnswer& answer) { serve(request, answer); }, port);
    port_ = server_->port();
  }
  void stop() { server_.reset(); }  // interrupts active requests
  int port() const { return port_; }
  KubeAccess access() const {
    KubeAccess access{.context = "stub", .server = fmt::format("http://127.0.0.1:{}", port_), .name_space = "team"};
    access.user.token = "known";
    return access;
  }
  std::unique_ptr<KubeApi> api(Clock& clock, Seconds patience = Seconds(10.0)) const {
    return std::make_unique<KubeApi>(std::make_shared<KubeCredentials>(access(), clock), clock, patience);
  }

  // Handlers come before all else, newest first; each answers at most `times`.
  void on(Handler handler, int times = 1'000'000) {
    const std::lock_guard lock(mutex_);
    handlers_.emplace_back(std::move(handler), times);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    handlers_.clear();
  }
  static void refuse(StubAnswer& answer, int status, const std::string& reason, const std::string& message,
                     const HttpHeaders& headers = {}) {
    answer.whole(status,
                 fmt::format(R"({{"kind":"Status","status":"Failure","reason":"{}","message":"{}","code":{}}})", reason,
                             message, status),
                 headers);
  }

  // The state. Keys are paths, such as /api/v1/namespaces/team/pods/a.
  void put(const std::string& path, Node object) {
    const std::lock_guard lock(mutex_);
    keep(path, std::move(object));
  }
  void put(const std::string& path, const char* yaml) { put(path, parse_yaml(yaml, "test").value()); }
  void put(const std::string& path, const std::string& yaml) { put(path, yaml.c_str()); }
  void take_away(const std::string& path) {
    const std::lock_guard lock(mutex_);
    forget(path);
  }
  std::optional<Node> find(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    return found == objects_.end() ? std::optional<Node>() : found->second;
  }
  std::vector<std::string> paths() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [path, object] : objects_) all.push_back(path);
    return all;
  }
  std::vector<std::string> asked() {  // requests in order: "GET /version"
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  int asked(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::ranges::count(asked_, what));
  }
  int version() const { return version_; }
  void forget_history() {  // older watches get Gone
    const std::lock_guard lock(mutex_);
    oldest_ = ++version_;
    events_.clear();
  }

 private:
  struct Change {
    int version;
    std::string type, path;
    Node object;
  };

  void keep(const std::string& path, Node object) {
    const bool there = objects_.count(path) > 0;
    Node metadata = *at(object, {"metadata"});
    metadata.set("resourceVersion", std::to_string(++version_));
    if (metadata.find("uid") == nullptr) metadata.set("uid", fmt::format("{:08x}-uid", version_ * 2654435761u));
    object.set("metadata", metadata);
    events_.push_back({version_, there ? "MODIFIED" : "ADDED", path, object});
    objects_[path] = std::move(object);
  }
  void forget(const std::string& path) {
    const auto found = objects_.find(path);
    if (found == objects_.end()) return;
    Node object = std::move(found->second);
    objects_.erase(found);
    Node metadata = *at(object, {"metadata"});
    object.set("metadata", metadata.set("resourceVersion", std::to_string(++version_)));
    events_.push_back({version_, "DELETED", path, std::move(object)});
  }
  static std::string decoded(const std::string& text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%')
        plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)), i += 2;
      else
        plain += text[i];
    }
    return plain;
  }
  static std::string query_of(const StubRequest& request, const std::string& name) {
    const std::string query = "&" + request.query + "&";
    const std::size_t found = query.find("&" + name + "=");
    if (found == query.npos) return "";
    const std::size_t begin = found + name.size() + 2;
    return decoded(query.substr(begin, query.find('&', begin) - begin));
  }
  static bool matches(const Node& object, const std::string& labels) {
    for (std::size_t begin = 0; begin < labels.size();) {
      const std::size_t end = std::min(labels.find(',', begin), labels.size());
      const std::string one = labels.substr(begin, end - begin);
      const std::size_t equals = one.find('=');
      const std::string value = text_at(object, {"metadata", "labels", one.substr(0, equals)});
      if (equals == one.npos ? value.empty() : value != one.substr(equals + 1)) return false;
      begin = end + 1;
    }
    return true;
  }
  static bool is_in(const std::string& path, const std::string& list) {
    return path.starts_with(list + "/") && path.find('/', list.size() + 1) == path.npos;
  }
  static const std::map<std::string, std::string>& kinds() {
    static const std::map<std::string, std::string> all = {{"pods", "Pod"},
                                                           {"jobs", "Job"},
                                                           {"configmaps", "ConfigMap"},
                                                           {"services", "Service"},
                                                           {"secrets", "Secret"},
                                                           {"networkpolicies", "NetworkPolicy"},
                                                           {"events", "Event"},
                                                           {"resourcequotas", "ResourceQuota"},
                                                           {"persistentvolumeclaims", "PersistentVolumeClaim"},
                                                           {"persistentvolumes", "PersistentVolume"}};
    return all;
  }

  void serve(const StubRequest& request, StubAnswer& answer) {
    std::vector<std::size_t> order;
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request.method + " " + request.path);
      for (std::size_t i = handlers_.size(); i-- > 0;) order.push_back(i);
    }
    for (const std::size_t i : order) {
      Handler handler;
      {
        const std::lock_guard lock(mutex_);
        if (i >= handlers_.size() || handlers_[i].second == 0) continue;
        handler = handlers_[i].first;
        --handlers_[i].second;
      }
      if (handler(request, answer)) return;
      const std::lock_guard lock(mutex_);
      if (i < handlers_.size()) ++handlers_[i].second;
    }
    if (request.header("authorization") != "Bearer known") return refuse(answer, 401, "Unauthorized", "Unauthorized");
    if (request.path == "/version") return answer.whole(200, R"({"major":"1","minor":"36+"})");
    if (request.asks("watch=true")) return watch(request, answer);
    if (request.path == "/apis")
      return answer.whole(200, R"({"groups":[{"versions":[{"groupVersion":"batch/v1"}]},)"
                               R"({"versions":[{"groupVersion":"networking.k8s.io/v1"}]}]})");
    const std::lock_guard lock(mutex_);
    if (const std::string found = resources(request.path); !found.empty()) return answer.whole(200, found);
    act(request, answer);
  }
  static std::string resources(const std::string& path) {
    const auto list = [](std::initializer_list<const char*> names) {
      std::string text = R"({"resources":[)";
      for (const char* name : names)
        text += fmt::format(R"({}{{"name":"{}","kind":"{}","namespaced":{}}})", text.ends_with('[') ? "" : ",", name,
                            kinds().at(name), std::string_view(name) != "persistentvolumes");
      return text + "]}";
    };
    if (path == "/api/v1")
      return list({"pods", "configmaps", "services", "secrets", "events", "resourcequotas", "persistentvolumeclaims",
                   "persistentvolumes"});
    if (path == "/apis/batch/v1") return list({"jobs"});
    if (path == "/apis/networking.k8s.io/v1") return list({"networkpolicies"});
    return "";
  }
  void act(const StubRequest& request, StubAnswer& answer) {
    const std::string name = request.path.substr(request.path.rfind('/') + 1);
    const bool dry = request.asks("dryRun=All");
    const auto found = objects_.find(request.path);
    const auto missing = [&] { refuse(answer, 404, "NotFound", name + " not found"); };
    if (request.method == "GET" && found != objects_.end()) return answer.whole(200, to_json(found->second));
    if (request.method == "GET" && kinds().count(name) > 0) return list(request, answer, kinds().at(name));
    if (request.method == "GET") return missing();
    if (request.method == "DELETE") {
      if (found == objects_.end()) return missing();
      forget(request.path);
      return answer.whole(200, R"({"kind":"Status","status":"Success"})");
    }
    Node body = parse_json(request.body, "body").value();
    std::string path = request.path;
    if (request.method == "POST") path += "/" + text_at(body, {"metadata", "name"});
    if (request.method == "POST" && objects_.count(path) > 0)
      return refuse(answer, 409, "AlreadyExists", path.substr(path.rfind('/') + 1) + " already exists");
    const bool merges = request.header("content-type") == "application/merge-patch+json";
    if (merges && found == objects_.end()) return missing();
    const auto old = objects_.find(path);
    Node next = old == objects_.end() ? body : merged(old->second, body);
    if (dry) return answer.whole(200, to_json(next));
    keep(path, next);
    answer.whole(200, to_json(objects_[path]));
  }
  static Node merged(Node into, const Node& change) {
    if (!change.is_map() || !into.is_map()) return change;
    for (const Node::Entry& entry : change.entries()) {
      const Node* there = into.find(entry.key);
      into.set(entry.key, there == nullptr ? entry.value : merged(*there, entry.value));
    }
    return into;
  }
  void list(const StubRequest& request, StubAnswer& answer, const std::string& kind) {
    const std::string labels = query_of(request, "labelSelector"), onward = query_of(request, "continue");
    const int limit = query_of(request, "limit").empty() ? 1'000'000 : std::stoi(query_of(request, "limit"));
    Node items = Node::sequence();
    std::string next;
    int count = 0;
    for (const auto& [path, object] : objects_) {
      if (!is_in(path, request.path) || path <= onward || !matches(object, labels)) continue;
      if (count == limit) break;
      items.push(object);
      next = ++count == limit ? path : "";
    }
    Node metadata = Node::map({{"resourceVersion", std::to_string(version_)}});
    if (!next.empty()) metadata.set("continue", next);
    answer.whole(200, to_json(Node::map({{"kind", kind + "List"},
                                         {"apiVersion", kind == "Job" ? "batch/v1" : "v1"},
                                         {"metadata", metadata},
                                         {"items", items}})));
  }
  void watch(const StubRequest& request, StubAnswer& answer) {
    int from = std::stoi(query_of(request, "resourceVersion"));
    const std::string labels = query_of(request, "labelSelector"), seconds = query_of(request, "timeoutSeconds");
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::seconds(seconds.empty() ? 60 : std::stoi(seconds));
    answer.begin();
    while (std::chrono::steady_clock::now() < until) {
      std::string text;
      {
        const std::lock_guard lock(mutex_);
        if (from < oldest_) {
          answer.piece(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})"
                       "\n");
          return answer.end();
        }
        for (const Change& change : events_) {
          if (change.version <= from) continue;
          from = change.version;
          if (is_in(change.path, request.path) && matches(change.object, labels))
            text += to_json(Node::map({{"type", change.type}, {"object", change.object}})) + "\n";
        }
      }
      if (!text.empty() && !answer.piece(text)) return;
      bool cut = false;
      const bool goes_on = answer.wait([&] {
        const std::lock_guard lock(mutex_);
        cut = cuts_ > 0;
        return cut || (!events_.empty() && events_.back().version > from) || from < oldest_ ||
               std::chrono::steady_clock::now() >= until;
      });
      if (cut) {
        const std::lock_guard lock(mutex_);
        --cuts_;
      }
      if (cut || !goes_on) return;
    }
    answer.end();
  }

 public:
  void cut_a_watch() {
    const std::lock_guard lock(mutex_);
    ++cuts_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<Handler, int>> handlers_;
  std::map<std::string, Node> objects_;
  std::vector<Change> events_;
  std::vector<std::string> asked_;
  int version_ = 1, oldest_ = 0, cuts_ = 0, port_ = 0;
  std::unique_ptr<StubServer> server_;
};

}  // namespace systole

#include "operate/targets/kubernetes/kube_send.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "ground/base/base64.h"
#include "ground/base/files.h"
#include "ground/base/iso_time.h"
#include "ground/base/text_file.h"
#include "ground/net/token.h"
#include "operate/render/kube_quantity.h"
#include "operate/targets/kubernetes/kube_objects.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNote = 900 << 10;  // a ConfigMap holds 1 MiB

std::string id_of(const Node& maker) {
  return fmt::format("{}/{:.8}", name_of(maker), text_at(maker, {"metadata", "uid"}));
}

// A copy under an unused name of the same length, so that the same rules apply.
Node under_another_name(const Node& object) {
  std::string name = name_of(object);
  name.back() = name.back() == 'x' ? 'y' : 'x';
  Node metadata = *object.find("metadata"), other = object;
  return other.set("metadata", metadata.set("name", name));
}

// What pods need to exist beforehand, as "claim NAME" or "secret NAME".
void find_needs(const Node& node, std::set<std::pair<std::string, std::string>>& needs) {
  const auto need = [&](const char* kind, const Node* of, const char* key) {
    if (of != nullptr && text_at(*of, {"optional"}) != "true" && !text_at(*of, {key}).empty())
      needs.emplace(kind, text_at(*of, {key}));
  };
  need("PersistentVolumeClaim", node.find("persistentVolumeClaim"), "claimName");
  need("Secret", node.find("secretKeyRef"), "name");
  need("Secret", node.find("secret"), "secretName");
  for (const Node& item : node.items()) find_needs(item, needs);
  for (const Node::Entry& entry : node.entries()) find_needs(entry.value, needs);
}

class Sending {
 public:
  Sending(KubeApi& api, const Record& record) : api_(api), record_(record) {}

  Result<std::string> run() {
    for (const Node& object : TRY(read_objects(record_)))
      objects_.push_back(labelled(object, record_.run, record_.submission));
    space_ = text_at(objects_.back(), {"metadata", "namespace"});
    if (Result<std::optional<std::string>> there = maker_there(); there.ok() && *there) return **there;
    TRY(check());
    Result<std::string> id = make();
    if (id.ok()) return id;
    // A request whose answer was lost may have created it.
    Result<std::optional<std::string>> there = maker_there();
    if (!there.ok()) return error(ErrorKind::io, "{}", id.error().message);
    if (*there) return **there;
    take_back();
    return id;
  }

 private:
  Result<std::optional<std::string>> maker_there() {
    for (const Node& object : objects_) {
      if (pod_maker(object) == nullptr) continue;
      const std::optional<Node> found = TRY(api_.find(TRY(api_.path_of(object))));
      if (found && label_of(*found, kSubmissionLabel) == record_.submission) return std::optional(id_of(*found));
    }
    return std::optional<std::string>();
  }

  Status check() {
    for (const Node& object : objects_) TRY(check(object));
    std::set<std::pair<std::string, std::string>> needs;
    for (const Node& object : objects_) {
      if (pod_maker(object) != nullptr) find_needs(object, needs);
      for (const PodGang& gang : gangs_of(object)) TRY(check(gang));
    }
    for (const auto& [kind, name] : needs) TRY(check_need(kind, name));
    return {};
  }

  Status check(const Node& object) {
    const std::string what = fmt::format("{} '{}'", text_at(object, {"kind"}), name_of(object));
    const std::optional<Node> there = TRY(api_.find(TRY(api_.path_of(object))));
    const bool ours = there && label_of(*there, kRunLabel) == record_.run;
    if (there && !ours)
      return error(ErrorKind::exists, "{} is there already, and is not of the run '{}'", what, record_.run)
          .hinted("another name: --run");
    const bool again = ours && pod_maker(object) != nullptr;  // most of it is immutable
    const Result<Node> tried =
        again ? api_.create(under_another_name(object), true) : api_.apply(object, {.dry_run = true, .force = ours});
    if (tried.ok() || (again && tried.error().kind == ErrorKind::exists)) return {};
    Error refused = tried.error();
    if (refused.code == ErrorCode::no_such_namespace)
      refused.hint = fmt::format("kubectl create namespace {}; or another one: kubernetes.namespace", space_);
    return refused;
  }

  // Dry-runs one of its pods against the cluster's rules, and compares all of them with its quotas.
  Status check(const PodGang& gang) {
    const Result<Node> tried = api_.create(gang.pod, true);
    if (!tried.ok() && tried.error().kind != ErrorKind::exists) return tried.error();
    std::map<std::string, double> wanted = requests_of(gang.pod);
    const KubeApi::Listed quotas = TRY(api_.list(TRY(api_.path_of("v1", "ResourceQuota", space_))));
    for (const Node& quota : quotas.items) {
      const Node* hard = at(quota, {"status", "hard"});
      if (hard == nullptr || at(quota, {"spec", "scopes"}) != nullptr ||
          at(quota, {"spec", "scopeSelector"}) != nullptr)
        continue;
      for (const Node::Entry& entry : hard->entries()) {
        const auto one = wanted.find(entry.key);
        if (one == wanted.end()) continue;
        const double left = quantity_of(entry.value.text()).value_or(0) -
                            quantity_of(text_at(quota, {"status", "used", entry.key})).value_or(0);
        const double all = one->second * static_cast<double>(gang.count);
        if (all > left * (1 + 1e-9))
          return error(ErrorKind::does_not_fit, "{} pods want {:g} of {}, and the quota '{}' leaves {:g}", gang.count,
                       all, entry.key, name_of(quota), std::max(left, 0.0))
              .hinted(fmt::format("kubectl describe resourcequota {} -n {}; or fewer: resources.nodes", name_of(quota),
                                  space_));
      }
    }
    return {};
  }

  Status check_need(const std::string& kind, const std::string& name) {
    const auto rendered = [&](const Node& object) {
      return text_at(object, {"kind"}) == kind && name_of(object) == name;
    };
    if (std::ranges::any_of(objects_, rendered) || name == record_.run + "-token") return {};
    if (TRY(api_.find(TRY(api_.path_of("v1", kind, space_, name))))) return {};
    const bool secret = kind == "Secret";
    return error(ErrorKind::not_found, "there is no {} '{}' in the namespace '{}'", secret ? "secret" : "claim", name,
                 space_)
        .hinted(secret ? fmt::format("kubectl create secret generic {} -n {} --from-file=KEY=FILE", name, space_)
                       : fmt::format("kubectl get persistentvolumeclaims -n {} lists those that there are", space_));
  }

  Result<std::string> make() {
    TRY(claim());
    if (wants_token(objects_, record_.run)) TRY(make_token());
    std::string id;
    for (const Node& object : objects_) {
      const std::string path = TRY(api_.path_of(object));
      const std::optional<Node> there = TRY(api_.find(path));
      const bool maker = pod_maker(object) != nullptr;
      if (there && maker) TRY(clear(path));
      const Node made = TRY(api_.apply(object, {.force = there.has_value()}));
      if (maker && id.empty()) id = id_of(made);
    }
    return id;
  }

  Node own(const char* kind, const std::string& name) const {
    Node labels = Node::map({{"app.kubernetes.io/name", "systole"}, {"app.kubernetes.io/managed-by", "systole"}});
    labels.set("app.kubernetes.io/instance", record_.run).set(kRunLabel, record_.run);
    labels.set(kSubmissionLabel, record_.submission);
    return Node::map({{"apiVersion", "v1"},
                      {"kind", kind},
                      {"metadata", Node::map({{"name", name}, {"namespace", space_}, {"labels", labels}})}});
  }

  Node note() const {
    Node data = Node::map({{"record.json", to_json(to_node(record_), 2)}});
    std::size_t size = 0;
    for (const fs::path& path : paths_in(record_.place + "/files")) {
      const Result<std::string> text = read_text_file(path.string(), Bytes(std::int64_t{kMostNote}));
      if (path.extension() != ".yaml" || !text.ok() || (size += text->size()) > kMostNote) continue;
      data.set(path.filename().string(), *text);
    }
    return own("ConfigMap", record_.run + kSubmissionNote).set("data", data);
  }

  // Only one submission can create the ConfigMap; one left behind is taken over as it is.
  Status claim() {
    const Node mine = note();
    const Result<Node> made = api_.create(mine);
    if (made.ok()) return {};
    if (made.error().kind != ErrorKind::exists) return made.error();
    const Node there = TRY(api_.get(TRY(api_.path_of(mine))));
    if (label_of(there, kSubmissionLabel) != record_.submission) TRY(check_left_behind(there));
    Node metadata = *mine.find("metadata"), over = mine;
    metadata.set("resourceVersion", text_at(there, {"metadata", "resourceVersion"}));
    const Result<Node> taken = api_.apply(over.set("metadata", metadata), {.force = true});
    return taken.ok() ? Status() : Status(taken.error());
  }

  Status check_left_behind(const Node& there) {
    constexpr auto kFresh = std::chrono::seconds(60);
    const Result<Record> other = record_of_note(there);
    if (!other.ok()) return other.error();
    const auto at = from_iso8601(other->submitted_at);
    for (const std::string& earlier : record_.earlier)
      if (earlier == other->id) return {};
    bool has_maker = false;
    for (const Node& object : objects_)
      if (pod_maker(object) != nullptr) has_maker = has_maker || TRY(api_.find(TRY(api_.path_of(object))));
    if (has_maker || !at.ok() || api_.clock().calendar() - *at > kFresh) return {};
    return error(ErrorKind::busy, "the run '{}' is being submitted by {} just now", record_.run, other->by)
        .hinted("systole runs --on kubernetes shows it; or another name: --run");
  }

  Status make_token() {
    const std::string token = TRY(RunToken::make()).hex();
    const Result<Node> made = api_.create(own("Secret", record_.run + "-token")
                                              .set("type", "Opaque")
                                              .set("data", Node::map({{"token", to_base64(token)}})));
    if (made.ok()) return {};
    if (made.error().kind != ErrorKind::exists) return made.error();
    const Node there = TRY(api_.get(TRY(api_.path_of("v1", "Secret", space_, record_.run + "-token"))));
    if (label_of(there, kRunLabel) == record_.run) return {};  // left by the previous submission
    return error(ErrorKind::exists, "secret '{}-token' is there already, and is not of this run", record_.run)
        .hinted("another name: --run");
  }

  // Deletes the previous object with all its pods.
  Status clear(const std::string& path) {
    TRY(api_.remove(path, "Foreground"));
    for (int turn = 0; turn < 600; ++turn) {
      if (!TRY(api_.find(path))) return {};
      api_.clock().sleep(Seconds(0.2));
    }
    return error(ErrorKind::busy, "what ran of '{}' before is still going, after two minutes", record_.run)
        .hinted("kubectl get pods -l systole/run=" + record_.run + " shows what holds it");
  }

  void take_back() {
    std::vector<Node> all = objects_;
    all.push_back(own("Secret", record_.run + "-token"));
    all.push_back(own("ConfigMap", record_.run + kSubmissionNote));
    for (const Node& object : all) {
      const Result<std::string> path = api_.path_of(object);
      if (!path.ok()) continue;
      const Result<std::optional<Node>> there = api_.find(*path);
      if (there.ok() && *there && label_of(**there, kSubmissionLabel) == record_.submission &&
          !holds_data(text_at(object, {"kind"})))
        (void)api_.remove(*path).ok();
    }
  }

  KubeApi& api_;
  const Record& record_;
  std::vector<Node> objects_;
  std::string space_;
};

}  // namespace

Result<Record> record_of_note(const Node& config_map) {
  const std::string text = text_at(config_map, {"data", "record.json"});
  return record_of(TRY(parse_json(text, name_of(config_map))));
}

Result<std::string> send_objects(KubeApi& api, const Record& record) { return Sending(api, record).run(); }

}  // namespace systole

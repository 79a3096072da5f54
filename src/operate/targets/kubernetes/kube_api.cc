#include "operate/targets/kubernetes/kube_api.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "ground/net/url.h"
#include "operate/targets/kubernetes/operators.h"

namespace systole {
namespace {

constexpr const char* kFieldManager = "systole";

constexpr Seconds kFirstWait{0.2}, kMostWait{5.0}, kMostAsked{30.0};
constexpr int kPage = 500;
constexpr int kOldestMinor = 29, kNewestMinor = 36;

bool is_passing(int status) {
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

// Retry-After in seconds; dates are not supported.
Seconds asked_wait(const HttpReply& reply, Seconds otherwise) {
  const std::string* header = reply.header("retry-after");
  int seconds = 0;
  if (header == nullptr || std::from_chars(header->data(), header->data() + header->size(), seconds).ec != std::errc())
    return otherwise;
  return std::min(Seconds(std::max(seconds, 0)), kMostAsked);
}

KubeReply read(const HttpReply& http) {
  KubeReply reply{.status = http.status, .body = {}, .reason = {}, .message = {}};
  Result<Node> body = parse_json(http.body, "the server's answer");
  if (body.ok()) reply.body = std::move(*body);
  if (reply.ok()) return reply;
  reply.reason = text_at(reply.body, {"reason"});
  reply.message = text_at(reply.body, {"message"});
  if (reply.message.empty()) reply.message = http.body.substr(0, std::min<std::size_t>(http.body.find('\n'), 200));
  if (reply.message.empty()) reply.message = fmt::format("status {}", http.status);
  return reply;
}

// How to install the API groups that clusters add.
std::string installs(const std::string& group) {
  for (const KubeOperator& one : kKubeOperators)
    if (one.group == group) return fmt::format("kubectl apply --server-side {}", one.place);
  if (group == "monitoring.googleapis.com") return "gcloud container clusters update NAME --enable-managed-prometheus";
  return "kubectl api-versions lists what it has";
}

// Some refusals differ only by their message: the reason of a 403 is always Forbidden.
ErrorCode code_of(const KubeReply& reply) {
  const auto says = [&](const char* words) { return reply.message.find(words) != std::string::npos; };
  if (reply.status == 401) return ErrorCode::not_authenticated;
  if (reply.status == 403 && says("being terminated")) return ErrorCode::namespace_ends;
  if (reply.status == 403 && says("exceeded quota")) return ErrorCode::quota_exceeded;
  if (reply.status == 403) return ErrorCode::forbidden;
  if ((reply.status == 404 || reply.status == 410) && says("namespaces \"")) return ErrorCode::no_such_namespace;
  return ErrorCode::none;
}

const char* hint_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_authenticated:
      return "it does not know who asks: renew the credentials; of GKE: gcloud container clusters get-credentials NAME";
    case ErrorCode::namespace_ends:
      return "the namespace is being taken away: another one (kubernetes.namespace), or wait until it is gone";
    case ErrorCode::quota_exceeded: return "kubectl describe resourcequota shows what is used";
    case ErrorCode::forbidden: return "kubectl auth can-i --list shows what this user may do";
    default: return "";
  }
}

}  // namespace

std::string version_warning(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 && major == 1 && minor >= kOldestMinor &&
      minor <= kNewestMinor)
    return "";
  return fmt::format("the cluster has Kubernetes {}; this was made for 1.{} to 1.{}", version, kOldestMinor,
                     kNewestMinor);
}

Error refusal_of(const KubeReply& reply, const std::string& what) {
  const auto kind = [&] {
    if (reply.status == 404 || reply.status == 410) return ErrorKind::not_found;
    if (reply.reason == "AlreadyExists") return ErrorKind::exists;
    if (reply.status == 409 || reply.status == 429) return ErrorKind::busy;
    return reply.status / 100 == 5 ? ErrorKind::io : ErrorKind::invalid;
  }();
  Error refused = error(kind, "{}: the cluster refuses: {}", what, reply.message).coded(code_of(reply));
  refused.hint = hint_of(refused.code);
  return refused;
}

Result<HttpReply> KubeApi::send(HttpRequest request) {
  bool renewed = false;
  while (true) {
    const KubeCredentials::Shown shown = TRY(credentials_->shown());
    if (client_ == nullptr || client_number_ != shown.number) {
      HttpTrust trust = access().trust;
      trust.certificate = shown.certificate;
      trust.key = shown.key;
      client_ = TRY(HttpClient::open(std::move(trust)));
      client_number_ = shown.number;
    }
    HttpRequest with = request;
    with.headers.insert(with.headers.end(), shown.headers.begin(), shown.headers.end());
    Result<HttpReply> reply = client_->send(with);
    if (!reply.ok() || reply->status != 401 || renewed || !credentials_->renew(shown)) return reply;
    renewed = true;
  }
}

Result<KubeReply> KubeApi::ask(const std::string& method, const std::string& path, const Node* body,
                               const std::string& type) {
  HttpRequest request{.method = method, .url = access().server + path};
  request.headers = {{"Accept", "application/json"}, {"User-Agent", "systole"}};
  if (body != nullptr) {
    request.headers.emplace_back("Content-Type", type);
    request.body = to_json(*body);
  }
  const Seconds begun = clock_.now();
  for (Seconds wait = kFirstWait;; wait = std::min(wait * 2.0, kMostWait)) {
    const Result<HttpReply> reply = send(request);
    if (!reply.ok() && reply.error().kind != ErrorKind::io) return reply.error();
    if (reply.ok() && !is_passing(reply->status)) return read(*reply);
    const Seconds pause = reply.ok() ? asked_wait(*reply, wait) : wait;
    const Seconds waited = clock_.now() - begun;
    if (waited + pause > patience_) {
      if (reply.ok()) return read(*reply);
      return error(ErrorKind::io, "the cluster of context '{}' does not answer, for {}: {}", access().context,
                   to_string(waited), reply.error().message)
          .hinted("kubectl cluster-info says whether it is up; --context names another one");
    }
    clock_.sleep(pause);
  }
}

Result<KubeReply> KubeApi::stream(const std::string& path, const std::function<bool(std::string_view)>& take,
                                  const std::function<bool()>& cancelled, Seconds idle) {
  HttpRequest request{.url = access().server + path};
  request.headers = {{"Accept", "*/*"}, {"User-Agent", "systole"}};
  request.timeout = Seconds(0);
  request.idle = idle;
  request.take = take;
  request.cancelled = cancelled;
  return read(TRY(send(std::move(request))));
}

Result<Node> KubeApi::get(const std::string& path) {
  KubeReply reply = TRY(ask("GET", path));
  if (!reply.ok()) return refusal_of(reply, path);
  return std::move(reply.body);
}

Result<std::optional<Node>> KubeApi::find(const std::string& path) {
  KubeReply reply = TRY(ask("GET", path));
  if (reply.status == 404) return std::optional<Node>();
  if (!reply.ok()) return refusal_of(reply, path);
  return std::optional<Node>(std::move(reply.body));
}

Result<KubeApi::Listed> KubeApi::list(const std::string& path, const std::string& labels, const std::string& more) {
  constexpr int kMostTurns = 3;
  for (int turn = 1;; ++turn) {
    Listed listed;
    std::string onward;
    KubeReply reply;
    do {
      std::string query = fmt::format("?limit={}", kPage);
      if (!labels.empty()) query += "&labelSelector=" + url_encoded(labels);
      if (!more.empty()) query += "&" + more;
      if (!onward.empty()) query += "&continue=" + url_encoded(onward);
      reply = TRY(ask("GET", path + query));
      if (!reply.ok()) break;
      const std::string kind = text_at(reply.body, {"kind"});
      if (const Node* items = reply.body.find("items"))
        for (Node item : items->items()) {
          item.set("apiVersion", text_at(reply.body, {"apiVersion"}));
          if (kind.ends_with("List")) item.set("kind", kind.substr(0, kind.size() - 4));
          listed.items.push_back(std::move(item));
        }
      onward = text_at(reply.body, {"metadata", "continue"});
      listed.version = text_at(reply.body, {"metadata", "resourceVersion"});
    } while (!onward.empty());
    if (reply.ok()) return listed;
    if (reply.status != 410 || turn == kMostTurns) return refusal_of(reply, path);
  }
}

Result<Node> KubeApi::apply(const Node& object, const ApplyOptions& options) {
  std::string path = TRY(path_of(object));
  path += fmt::format("?fieldManager={}&fieldValidation=Strict&force={}", kFieldManager, options.force);
  if (options.dry_run) path += "&dryRun=All";
  KubeReply reply = TRY(ask("PATCH", path, &object, "application/apply-patch+yaml"));
  if (!reply.ok())
    return refusal_of(reply, fmt::format("{} '{}'", text_at(object, {"kind"}), text_at(object, {"metadata", "name"})));
  return std::move(reply.body);
}

Result<Node> KubeApi::create(const Node& object, bool dry_run) {
  std::string path = TRY(path_of(object));
  path.resize(path.rfind('/'));
  path += fmt::format("?fieldManager={}&fieldValidation=Strict", kFieldManager);
  if (dry_run) path += "&dryRun=All";
  KubeReply reply = TRY(ask("POST", path, &object));
  if (!reply.ok())
    return refusal_of(reply, fmt::format("{} '{}'", text_at(object, {"kind"}), text_at(object, {"metadata", "name"})));
  return std::move(reply.body);
}

Result<Node> KubeApi::patch(const std::string& path, const Node& change) {
  KubeReply reply = TRY(
      ask("PATCH", fmt::format("{}?fieldManager={}", path, kFieldManager), &change, "application/merge-patch+json"));
  if (!reply.ok()) return refusal_of(reply, path);
  return std::move(reply.body);
}

Status KubeApi::remove(const std::string& path, const char* propagation, std::int64_t grace) {
  Node options = Node::map({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", propagation}});
  if (grace >= 0) options.set("gracePeriodSeconds", grace);
  const KubeReply reply = TRY(ask("DELETE", path, &options));
  if (reply.ok() || reply.status == 404) return {};
  return refusal_of(reply, path);
}

Result<std::vector<KubeResource>> KubeApi::resources(const std::string& api_version) {
  if (const auto known = resources_.find(api_version); known != resources_.end()) return known->second;
  const std::size_t slash = api_version.find('/');
  const KubeReply reply = TRY(ask("GET", (slash == api_version.npos ? "/api/" : "/apis/") + api_version));
  if (reply.status == 404)
    return error(ErrorKind::not_found, "the cluster of context '{}' has no {}", access().context, api_version)
        .hinted(installs(api_version.substr(0, slash)));
  if (!reply.ok()) return refusal_of(reply, api_version);
  std::vector<KubeResource> list;
  if (const Node* all = reply.body.find("resources"))
    for (const Node& one : all->items())
      if (const std::string plural = text_at(one, {"name"}); plural.find('/') == plural.npos)
        list.push_back({text_at(one, {"kind"}), plural, text_at(one, {"namespaced"}) == "true"});
  resources_[api_version] = list;
  return list;
}

Result<bool> KubeApi::serves(const std::string& api_version) {
  if (served_.empty()) {
    const Node groups = TRY(get("/apis"));
    if (const Node* all = groups.find("groups"))
      for (const Node& group : all->items())
        if (const Node* versions = group.find("versions"))
          for (const Node& version : versions->items()) served_.push_back(text_at(version, {"groupVersion"}));
  }
  return std::ranges::find(served_, api_version) != served_.end();
}

Result<std::string> KubeApi::path_of(const std::string& api_version, const std::string& kind,
                                     const std::string& name_space, const std::string& name) {
  const std::vector<KubeResource> all = TRY(resources(api_version));
  const auto found = std::ranges::find(all, kind, &KubeResource::kind);
  if (found == all.end())
    return error(ErrorKind::not_found, "the cluster of context '{}' has no {} in {}", access().context, kind,
                 api_version)
        .hinted(installs(api_version.substr(0, api_version.find('/'))));
  std::string path = (api_version.find('/') == api_version.npos ? "/api/" : "/apis/") + api_version;
  if (found->namespaced) path += "/namespaces/" + url_encoded(name_space);
  path += "/" + found->plural;
  return name.empty() ? path : path + "/" + url_encoded(name);
}

Result<std::string> KubeApi::path_of(const Node& object) {
  return path_of(text_at(object, {"apiVersion"}), text_at(object, {"kind"}), text_at(object, {"metadata", "namespace"}),
                 text_at(object, {"metadata", "name"}));
}

Result<std::string> KubeApi::version() {
  const Node told = TRY(get("/version"));
  std::string minor = text_at(told, {"minor"});
  while (!minor.empty() && !std::isdigit(static_cast<unsigned char>(minor.back()))) minor.pop_back();  // "31+"
  return text_at(told, {"major"}) + "." + minor;
}

}  // namespace systole

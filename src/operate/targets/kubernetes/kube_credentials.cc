#include "operate/targets/kubernetes/kube_credentials.h"

#include "ground/base/base64.h"
#include "ground/base/document.h"
#include "ground/base/iso_time.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"

namespace systole {
namespace {

constexpr auto kEarly = std::chrono::seconds(30);  // renewed so long before it expires

// A word that is valid in a header.
Result<std::string> word_of(std::string text, const std::string& what) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
      return error(ErrorKind::invalid, "{} holds spaces or lines, and is no token", what);
  if (text.empty()) return error(ErrorKind::invalid, "{} is empty", what);
  return text;
}

void add_token(HttpHeaders& headers, const std::string& token) {
  headers.emplace_back("Authorization", "Bearer " + token);
}

Node cluster_of(const KubeAccess& access) {
  Node cluster = Node::map({{"server", access.server}});
  if (!access.trust.authorities.text.empty())
    cluster.set("certificate-authority-data", to_base64(access.trust.authorities.text));
  if (!access.trust.server_name.empty()) cluster.set("tls-server-name", access.trust.server_name);
  if (!access.trust.checks_certificate) cluster.set("insecure-skip-tls-verify", true);
  return cluster;
}

}  // namespace

Result<KubeCredentials::Shown> KubeCredentials::shown() {
  const std::lock_guard lock(mutex_);
  const KubeUser& user = access_.user;
  if (user.exec) {
    if (kept_ && (!until_ || clock_.calendar() + kEarly < *until_)) return *kept_;
    kept_ = TRY(by_plugin());
    return *kept_;
  }
  Shown shown{.headers = {}, .certificate = user.certificate, .key = user.key, .number = number_};
  if (!user.token_file.empty()) {
    add_token(shown.headers, TRY(word_of(TRY(read_secret_file(user.token_file, kMiB, user.of_pod)), user.token_file)));
  } else if (!user.token.empty()) {
    add_token(shown.headers, TRY(word_of(user.token, fmt::format("the token of user '{}'", user.name))));
  } else if (!user.username.empty()) {
    shown.headers.emplace_back("Authorization", "Basic " + to_base64(user.username + ":" + user.password));
  }
  return shown;
}

bool KubeCredentials::renew(const Shown& refused) {
  const std::lock_guard lock(mutex_);
  if (refused.number != number_) return true;
  if (!access_.user.exec && access_.user.token_file.empty()) return false;
  ++number_;
  kept_.reset();
  return true;
}

Result<KubeCredentials::Shown> KubeCredentials::by_plugin() {
  const ExecPlugin& plugin = *access_.user.exec;
  Node spec = Node::map({{"interactive", false}});
  if (plugin.wants_cluster) spec.set("cluster", cluster_of(access_));
  Command command{.argv = plugin.argv};
  for (const auto& [name, value] : plugin.env) command.env.emplace_back(name, value);
  command.env.emplace_back(
      "KUBERNETES_EXEC_INFO",
      to_json(Node::map({{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", spec}})));
  CaptureOptions options;
  options.timeout = Seconds(60.0);
  const Result<Captured> captured = run_captured(std::move(command), options);
  if (!captured.ok())
    return error(ErrorKind::not_found, "'{}' gives the credentials of context '{}' and does not run: {}",
                 plugin.argv[0], access_.context, captured.error().message)
        .hinted(plugin.install_hint.empty() ? "install it where PATH finds it" : plugin.install_hint);
  const Captured& said = *captured;
  const auto refused = [&](const std::string& why) {
    return error(ErrorKind::invalid, "'{}' gives no credentials for context '{}': {}", plugin.argv[0], access_.context,
                 why);
  };
  if (said.timed_out) return refused("it did not end in a minute");
  if (!said.exit.ok()) {
    const std::string first = said.err.substr(0, std::min<std::size_t>(said.err.find('\n'), 200));
    return refused(first.empty() ? to_string(said.exit) : first).hinted("run it by hand; it may want a new login");
  }
  // Errors do not quote the output: it contains secrets.
  const Result<Node> document = parse_json(said.out, "its output");
  const Node* status = document.ok() ? document->find("status") : nullptr;
  if (status == nullptr || !status->is_map()) return refused("what it prints is no ExecCredential with a status");
  const auto text = [&](const char* key) {
    const Node* node = status->find(key);
    return node == nullptr ? std::string() : node->text();
  };
  Shown shown{.headers = {}, .certificate = {}, .key = {}, .number = number_};
  if (!text("token").empty()) add_token(shown.headers, TRY(word_of(text("token"), "the token that it prints")));
  shown.certificate.text = text("clientCertificateData");
  shown.key.text = text("clientKeyData");
  if (shown.headers.empty() && shown.certificate.empty()) return refused("it prints neither a token nor a certificate");
  until_.reset();
  if (const std::string until = text("expirationTimestamp"); !until.empty()) until_ = TRY(from_iso8601(until));
  return shown;
}

}  // namespace systole

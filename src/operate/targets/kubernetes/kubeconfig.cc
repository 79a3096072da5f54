#include "operate/targets/kubernetes/kubeconfig.h"

#include <cstdlib>
#include <filesystem>

#include "ground/base/base64.h"
#include "ground/base/document.h"
#include "ground/base/nearest.h"
#include "ground/base/shown_text.h"
#include "ground/base/text_file.h"
#include "ground/net/socket.h"
#include "ground/net/url.h"
#include "operate/targets/kubernetes/kube_fields.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string path;
  Node root;
};

constexpr Bytes kMostSecret = kMiB;  // of a token or a key

bool true_at(const Node& map, std::string_view key) { return text_at(map, {key}) == "true"; }

// Paths in a file are relative to it.
std::string path_at(const File& file, const Node& map, std::string_view key) {
  const std::string path = text_at(map, {key});
  if (path.empty() || path.starts_with('/')) return path;
  return (fs::path(file.path).parent_path() / path).lexically_normal().string();
}

Result<PemText> pem_at(const File& file, const Node& map, const std::string& key) {
  PemText pem{.text = {}, .file = path_at(file, map, key)};
  const Node* data = map.find(key + "-data");
  if (data == nullptr || data->text().empty()) return pem;
  Result<std::string> text = from_base64(data->text());
  if (!text.ok())
    return error(ErrorKind::invalid, "{}-data: {}", key, text.error().message)
        .at(data->where())
        .hinted("fetch the cluster's credentials again");
  pem.text = std::move(*text);
  return pem;
}

class Kubeconfig {
 public:
  static Result<Kubeconfig> read(const KubeconfigRequest& ask) {
    Kubeconfig all;
    for (const std::string& path : ask.files) {
      std::error_code failed;
      if (path.empty() || !fs::exists(path, failed)) continue;
      Node root = TRY(parse_yaml(TRY(read_text_file(path, kMiB * 4)), path));
      if (root.is_null()) continue;
      const std::string kind = text_at(root, {"kind"});
      if (!root.is_map() || (!kind.empty() && kind != "Config"))
        return error(ErrorKind::invalid, "this is no kubeconfig").at({path, 0, 0}).hinted("KUBECONFIG=FILE names one");
      all.files_.push_back({path, std::move(root)});
    }
    return all;
  }
  bool empty() const { return files_.empty(); }

  std::string current() const {
    for (const File& file : files_)
      if (std::string name = text_at(file.root, {"current-context"}); !name.empty()) return name;
    return "";
  }
  struct Found {
    const File* file;
    const Node* body;
  };
  // `list` "contexts" has items {name, context: {...}}. Errors: not_found, invalid.
  Result<Found> find(const std::string& list, const std::string& key, const std::string& name) const {
    std::vector<std::string> names;
    for (const File& file : files_) {
      const Node* items = file.root.find(list);
      if (items == nullptr) continue;
      for (const Node& item : items->items()) {
        names.push_back(text_at(item, {"name"}));
        if (names.back() != name) continue;
        const Node* body = item.find(key);
        if (body == nullptr || !body->is_map())
          return error(ErrorKind::invalid, "{} '{}' says nothing", key, name).at(item.where());
        return Found{&file, body};
      }
    }
    return error(ErrorKind::not_found, "there is no {} '{}'", key, name)
        .at({files_.front().path, 0, 0})
        .hinted(names.empty() ? fmt::format("it names no {} at all: fetch the cluster's credentials", key)
                              : nearest_hint(name, names));
  }

 private:
  std::vector<File> files_;
};

Result<ExecPlugin> plugin_of(const File& file, const Node& exec) {
  ExecPlugin plugin;
  std::string command = text_at(exec, {"command"});
  if (command.empty()) return error(ErrorKind::invalid, "exec: no command").at(exec.where());
  if (command.find('/') != command.npos && !command.starts_with('/')) command = path_at(file, exec, "command");
  plugin.argv.push_back(std::move(command));
  if (const Node* args = exec.find("args"))
    for (const Node& arg : args->items()) plugin.argv.push_back(arg.text());
  if (const Node* env = exec.find("env"))
    for (const Node& one : env->items()) plugin.env.emplace_back(text_at(one, {"name"}), text_at(one, {"value"}));
  plugin.api_version = text_at(exec, {"apiVersion"});
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1")
    return error(ErrorKind::unsupported, "exec: credentials of '{}' are not read here", plugin.api_version)
        .at(exec.where())
        .hinted("client.authentication.k8s.io/v1, by a newer version of its program");
  plugin.install_hint = text_at(exec, {"installHint"});
  plugin.wants_cluster = true_at(exec, "provideClusterInfo");
  return plugin;
}

Result<KubeUser> user_of(const Kubeconfig::Found& found, const std::string& name) {
  const auto& [file, body] = found;
  KubeUser user{.name = name};
  user.certificate = TRY(pem_at(*file, *body, "client-certificate"));
  user.key = TRY(pem_at(*file, *body, "client-key"));
  user.token = text_at(*body, {"token"});
  user.token_file = path_at(*file, *body, "tokenFile");
  user.username = text_at(*body, {"username"});
  user.password = text_at(*body, {"password"});
  if (const Node* exec = body->find("exec"); exec != nullptr && exec->is_map())
    user.exec = TRY(plugin_of(*file, *exec));
  if (const Node* old = body->find("auth-provider"); old != nullptr && old->is_map())
    return error(ErrorKind::unsupported, "user '{}': the auth-provider '{}' was taken out of Kubernetes in 1.26", name,
                 text_at(*old, {"name"}))
        .at(old->where())
        .hinted(
            "fetch the credentials again with a program of today; of GKE: gcloud container clusters "
            "get-credentials NAME");
  // curl would not check who else can read it.
  if (user.key.text.empty() && !user.key.file.empty())
    user.key.text = TRY(read_secret_file(std::exchange(user.key.file, {}), kMostSecret));
  const bool secret = !user.token.empty() || !user.password.empty() || body->find("client-key-data") != nullptr ||
                      (user.exec && !user.exec->env.empty());
  if (std::optional<Error> open = readable_by_others(file->path); secret && open)
    return std::move(*open).at({file->path, 0, 0});
  if (user.certificate.empty() != user.key.empty())
    return error(ErrorKind::invalid, "user '{}': a client certificate and its key go together", name).at(body->where());
  return user;
}

bool has_credentials(const KubeUser& user) {
  return !user.certificate.empty() || !user.token.empty() || !user.token_file.empty() || !user.username.empty() ||
         user.exec;
}

// Credentials are sent only over TLS, or within this machine.
Status check_server(const std::string& server, const std::string& cluster, const Node& body) {
  const Node* node = body.find("server");
  const Where where = node == nullptr ? body.where() : node->where();
  const UrlParts url(server);
  const bool plain = url.scheme == "http://";
  const bool odd = server.find_first_of(" \t\r\n\\") != server.npos;
  if ((!plain && url.scheme != "https://") || url.host.empty() || odd)
    return error(ErrorKind::invalid, "cluster '{}': server is '{}', which is no https://HOST", cluster,
                 without_passwords(server))
        .at(where);
  if (!url.user.empty())
    return error(ErrorKind::invalid, "cluster '{}': its server's address has a user in it, '{}'", cluster,
                 without_passwords(server))
        .at(where)
        .hinted("who we are stands under users: username and password, token or exec");
  if (plain && !is_loopback(url.bare_host()))
    return error(ErrorKind::invalid,
                 "cluster '{}': server is '{}', without TLS: whoever is on the way there could read the credentials",
                 cluster, server)
        .at(where)
        .hinted("https://HOST; or http://127.0.0.1:PORT, behind a tunnel: kubectl proxy, or ssh -L PORT:HOST:PORT");
  return {};
}

Result<KubeAccess> access_of(const Kubeconfig& config, const std::string& context) {
  const Kubeconfig::Found found = TRY(config.find("contexts", "context", context));
  const auto named = [&](const char* key) { return text_at(*found.body, {key}); };
  KubeAccess access{.context = context, .server = {}, .name_space = named("namespace"), .trust = {}, .user = {}};
  if (access.name_space.empty()) access.name_space = "default";
  const Kubeconfig::Found cluster = TRY(config.find("clusters", "cluster", named("cluster")));
  access.server = text_at(*cluster.body, {"server"});
  while (access.server.ends_with('/')) access.server.pop_back();
  TRY(check_server(access.server, named("cluster"), *cluster.body));
  access.trust.authorities = TRY(pem_at(*cluster.file, *cluster.body, "certificate-authority"));
  access.trust.server_name = text_at(*cluster.body, {"tls-server-name"});
  access.trust.proxy = text_at(*cluster.body, {"proxy-url"});
  access.trust.checks_certificate = !true_at(*cluster.body, "insecure-skip-tls-verify");
  if (named("user").empty()) {
    access.user.name = "nobody";
  } else {
    const Kubeconfig::Found user = TRY(config.find("users", "user", named("user")));
    access.user = TRY(user_of(user, named("user")));
  }
  if (!has_credentials(access.user))
    return error(ErrorKind::invalid, "the context '{}' has no credentials: user '{}' has no certificate, token or exec",
                 context, access.user.name)
        .at(found.body->where())
        .hinted(fmt::format("kubectl config set-credentials {} --token=TOKEN; of GKE: gcloud container clusters "
                            "get-credentials NAME",
                            access.user.name));
  return access;
}

Result<KubeAccess> access_of_pod(const KubeconfigRequest& ask) {
  const std::string token = ask.pod_folder + "/token";
  const bool v6 = ask.pod_host.find(':') != ask.pod_host.npos;
  KubeAccess access{.context = "in-cluster", .server = {}, .name_space = "default", .trust = {}, .user = {}};
  access.server = fmt::format("https://{}{}{}:{}", v6 ? "[" : "", ask.pod_host, v6 ? "]" : "", ask.pod_port);
  access.trust.authorities.file = ask.pod_folder + "/ca.crt";
  access.user.name = "service account";
  access.user.token_file = token;
  access.user.of_pod = true;
  if (Result<std::string> space = read_text_file(ask.pod_folder + "/namespace", kKiB); space.ok() && !space->empty())
    access.name_space = space->substr(0, space->find('\n'));
  return access;
}

}  // namespace

KubeconfigRequest kubeconfig_of_environment(std::string context) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  KubeconfigRequest ask{.context = std::move(context)};
  std::string list = variable("KUBECONFIG");
  if (list.empty() && !variable("HOME").empty()) list = variable("HOME") + "/.kube/config";
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    if (end > at) ask.files.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  ask.pod_host = variable("KUBERNETES_SERVICE_HOST");
  ask.pod_port = variable("KUBERNETES_SERVICE_PORT");
  return ask;
}

Result<KubeAccess> kube_access(const KubeconfigRequest& ask) {
  const Kubeconfig config = TRY(Kubeconfig::read(ask));
  if (config.empty()) {
    std::error_code failed;
    if (ask.context.empty() && !ask.pod_host.empty() && fs::exists(ask.pod_folder + "/token", failed))
      return access_of_pod(ask);
    return error(ErrorKind::not_found, "no cluster is known here: there is no kubeconfig{}",
                 ask.files.empty() ? "" : fmt::format(" at {}", fmt::join(ask.files, " or ")))
        .hinted("KUBECONFIG=FILE; of GKE: gcloud container clusters get-credentials NAME --location PLACE");
  }
  const std::string context = ask.context.empty() ? config.current() : ask.context;
  if (context.empty())
    return error(ErrorKind::not_found, "the kubeconfig has no current context")
        .hinted("--context NAME; or kubectl config use-context NAME");
  return access_of(config, context);
}

}  // namespace systole

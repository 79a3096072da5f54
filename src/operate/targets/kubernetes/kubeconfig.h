#pragma once
// Finds a Kubernetes cluster and our credentials as kubectl does: from the files of KUBECONFIG, ~/.kube/config, or the
// service account of the pod that this runs in. Among several files the first that defines a name wins.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/net/http_client.h"

namespace systole {

// A program that prints our credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  std::string api_version;
  std::string install_hint;  // shown if it is not installed
  bool wants_cluster = false;
};

struct KubeUser {
  std::string name;
  PemText certificate, key;
  std::string token, token_file;  // the file wins, and is reread
  bool of_pod = false;            // the file is a Kubernetes mount: readable by everything in the pod
  std::string username, password;
  std::optional<ExecPlugin> exec;
};

struct KubeAccess {
  std::string context;     // "in-cluster" within a pod
  std::string server;      // https://HOST[:PORT][/PATH], without a trailing '/'; http:// only on this machine
  std::string name_space;  // the context's; default "default"
  HttpTrust trust;         // to verify the server; our credentials are in `user`
  KubeUser user;
};

struct KubeconfigRequest {
  std::string context;             // empty: the current one
  std::vector<std::string> files;  // in order; missing ones are skipped
  std::string pod_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string pod_host, pod_port;  // KUBERNETES_SERVICE_HOST and _PORT
};
// From this process's environment.
KubeconfigRequest kubeconfig_of_environment(std::string context);

// Errors, at their position: not_found, no file, context, cluster or user of that name, with the nearest; invalid, not
// a kubeconfig, a context without credentials, a server without TLS, or credentials that others may read.
Result<KubeAccess> kube_access(const KubeconfigRequest& ask);

}  // namespace systole

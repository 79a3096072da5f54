#pragma once
// Where a Kubernetes cluster is and who we are there, as kubectl finds it: the files of KUBECONFIG, ~/.kube/config, or
// the service account of the pod that this runs in. In a list of files the first that names something counts.

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
  std::string install_hint;  // for who has it not
  bool wants_cluster = false;
};

struct KubeUser {
  std::string name;
  PemText certificate, key;
  std::string token, token_file;  // the file counts, and is read anew
  bool of_pod = false;            // the file is as Kubernetes mounts it: for all in the pod
  std::string username, password;
  std::optional<ExecPlugin> exec;
};

struct KubeAccess {
  std::string context;     // "in-cluster" of a pod
  std::string server;      // https://HOST[:PORT][/PATH], without a '/' behind; http:// on this machine alone
  std::string name_space;  // the context's; "default" without
  HttpTrust trust;         // of the server; who we are is in `user`
  KubeUser user;
};

struct KubeconfigAsk {
  std::string context;             // empty: the current one
  std::vector<std::string> files;  // in order; those that are not there are passed over
  std::string pod_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string pod_host, pod_port;  // KUBERNETES_SERVICE_HOST and _PORT
};
// As the environment of this process says.
KubeconfigAsk kubeconfig_of_environment(std::string context);

// Errors, at their place: not_found, no file, context, cluster or user of that name, with the nearest; invalid, what is
// no kubeconfig, a context without credentials, a server that they would go to without TLS, or credentials that others
// may read.
Result<KubeAccess> kube_access(const KubeconfigAsk& ask);

}  // namespace systole

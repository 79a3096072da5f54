#pragma once
// The REST interface of a Kubernetes API server, as far as runs need it. Every call is idempotent, and is retried while
// the server is away, busy or restarting, for up to `patience`, respecting Retry-After. An expired token is renewed
// once (kube_credentials.h).

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/net/http_client.h"
#include "operate/targets/kubernetes/kube_credentials.h"
#include "operate/targets/kubernetes/kube_fields.h"

namespace systole {

// The server's reply, of any status.
struct KubeReply {
  int status = 0;  // of HTTP
  Node body;       // an object, or a Status
  std::string reason, message;
  bool ok() const { return status / 100 == 2; }
};
// Maps a refusal to an error: not_found (404, 410), exists (AlreadyExists), busy (Conflict, 429), io (5xx), otherwise
// invalid, with the server's message.
Error refusal_of(const KubeReply& reply, const std::string& what);

// A kind's name in paths.
struct KubeResource {
  std::string kind, plural;
  bool namespaced = true;
};

struct ApplyOptions {
  bool dry_run = false;
  bool force = false;  // takes over fields that others set
};

class KubeApi {
 public:
  KubeApi(std::shared_ptr<KubeCredentials> credentials, Clock& clock, Seconds patience = Seconds(10.0))
      : credentials_(std::move(credentials)), clock_(clock), patience_(patience) {}
  // A copy with its own connection, for another thread.
  std::unique_ptr<KubeApi> another(Seconds patience) const {
    return std::make_unique<KubeApi>(credentials_, clock_, patience);
  }
  const KubeAccess& access() const { return credentials_->access(); }
  Clock& clock() const { return clock_; }

  // Errors: io, no answer within the patience; those of the credentials. A refusal is not an error.
  Result<KubeReply> ask(const std::string& method, const std::string& path, const Node* body = nullptr,
                        const std::string& type = "application/json");
  // A streamed answer, without a retry. `cancelled` may be empty. Errors: as ask, without patience.
  Result<KubeReply> stream(const std::string& path, const std::function<bool(std::string_view)>& take,
                           const std::function<bool()>& cancelled, Seconds idle);

  // Errors of all below: as ask, and refusal_of.
  Result<Node> get(const std::string& path);
  Result<std::optional<Node>> find(const std::string& path);  // nothing if it does not exist
  struct Listed {
    std::vector<Node> items;  // with apiVersion and kind, which lists omit
    std::string version;      // where a watch begins
  };
  // Reads pages. Starts again if the server expires the list meanwhile.
  Result<Listed> list(const std::string& path, const std::string& labels = {}, const std::string& more = {});
  Result<Node> apply(const Node& object, const ApplyOptions& options = {});
  Result<Node> create(const Node& object, bool dry_run = false);
  Result<Node> patch(const std::string& path, const Node& change);  // JSON merge patch
  // Deletes in the background. Succeeds if it does not exist. `grace`: of its pods, in seconds; negative: their own.
  Status remove(const std::string& path, const char* propagation = "Background", std::int64_t grace = -1);

  // For "v1" or "batch/v1". Errors: not_found, the server does not have it, with the command that installs it.
  Result<std::vector<KubeResource>> resources(const std::string& api_version);
  // Whether the server has it; fetches the list of all once.
  Result<bool> serves(const std::string& api_version);
  // "/apis/batch/v1/namespaces/NS/jobs", followed by "/NAME" if given. Errors: as resources().
  Result<std::string> path_of(const std::string& api_version, const std::string& kind, const std::string& name_space,
                              const std::string& name = {});
  Result<std::string> path_of(const Node& object);
  // The server's version, "1.31".
  Result<std::string> version();

 private:
  Result<HttpReply> send(HttpRequest request);

  std::shared_ptr<KubeCredentials> credentials_;
  Clock& clock_;
  Seconds patience_;
  std::unique_ptr<HttpClient> client_;
  int client_number_ = -1;  // number of the credentials it was made with
  std::map<std::string, std::vector<KubeResource>> resources_;
  std::vector<std::string> served_;  // "batch/v1"
};

// A warning if the server's version is untested; otherwise "".
std::string version_warning(const std::string& version);

}  // namespace systole

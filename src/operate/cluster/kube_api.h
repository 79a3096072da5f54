#pragma once
// The REST interface of a Kubernetes API server, as much of it as runs need. Every act here may be repeated without
// harm, and is, while the server is away, busy or restarting: up to `patience`, and as it asks by Retry-After. A token
// that it no longer takes is renewed once (kube_credentials.h).

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
#include "operate/cluster/kube_credentials.h"
#include "operate/cluster/kube_fields.h"

namespace systole {

inline constexpr const char* kFieldManager = "systole";

// What the server said, whatever it was.
struct KubeReply {
  int status = 0;  // of HTTP
  Node body;       // an object, or a Status
  std::string reason, message;
  bool ok() const { return status / 100 == 2; }
};
// Errors' kinds: not_found (404, 410), exists (AlreadyExists), busy (Conflict, 429), io (5xx), else invalid: what it
// refuses, in its words.
Error refusal_of(const KubeReply& reply, const std::string& what);

// What a kind is called in paths.
struct KubeResource {
  std::string kind, plural;
  bool namespaced = true;
};

struct ApplyOptions {
  bool dry_run = false;
  bool force = false;  // take over fields that others set
};

class KubeApi {
 public:
  KubeApi(std::shared_ptr<KubeCredentials> credentials, Clock& clock, Seconds patience = Seconds(10.0))
      : credentials_(std::move(credentials)), clock_(clock), patience_(patience) {}
  // With a connection of its own, for another thread.
  std::unique_ptr<KubeApi> another(Seconds patience) const {
    return std::make_unique<KubeApi>(credentials_, clock_, patience);
  }
  const KubeAccess& access() const { return credentials_->access(); }
  Clock& clock() const { return clock_; }

  // Errors: io, no answer after so long, which it says; those of the credentials. A refusal is none.
  Result<KubeReply> ask(const std::string& method, const std::string& path, const Node* body = nullptr,
                        const std::string& type = "application/json");
  // An answer as it comes, once. `cancelled` may be empty. Errors: as ask, without patience.
  Result<KubeReply> stream(const std::string& path, const std::function<bool(std::string_view)>& take,
                           const std::function<bool()>& cancelled, Seconds idle);

  // Errors of all below: as ask, and refusal_of.
  Result<Node> get(const std::string& path);
  Result<std::optional<Node>> find(const std::string& path);  // nothing when it is not there
  struct Listed {
    std::vector<Node> items;  // with apiVersion and kind, which lists leave out
    std::string version;      // that a watch begins from
  };
  // In pages. Begins anew when the server has forgotten the list in the middle of it.
  Result<Listed> list(const std::string& path, const std::string& labels = {}, const std::string& more = {});
  Result<Node> apply(const Node& object, const ApplyOptions& options = {});
  Result<Node> create(const Node& object, bool dry_run = false);
  Result<Node> patch(const std::string& path, const Node& change);  // JSON merge patch
  // Gone or going: fine when it is not there. `grace`: of its pods, in seconds; below 0: their own.
  Status remove(const std::string& path, const char* propagation = "Background", std::int64_t grace = -1);

  // Of "v1" or "batch/v1". Errors: not_found, the server has it not, with the command that installs it.
  Result<std::vector<KubeResource>> resources(const std::string& api_version);
  // Whether it has it at all; all of them are asked for once.
  Result<bool> serves(const std::string& api_version);
  // "/apis/batch/v1/namespaces/NS/jobs" and, with its name, "/NAME". Errors: as resources().
  Result<std::string> path_of(const std::string& api_version, const std::string& kind, const std::string& name_space,
                              const std::string& name = {});
  Result<std::string> path_of(const Node& object);
  // "1.31" of the server.
  Result<std::string> version();

 private:
  Result<HttpReply> send(HttpRequest request);

  std::shared_ptr<KubeCredentials> credentials_;
  Clock& clock_;
  Seconds patience_;
  std::unique_ptr<HttpClient> client_;
  int client_number_ = -1;  // of the credentials that it was made with
  std::map<std::string, std::vector<KubeResource>> resources_;
  std::vector<std::string> served_;  // "batch/v1"
};

// A word in a query: everything but letters, digits and "-._~" as %XX.
std::string url_word(std::string_view text);
// A warning where the server's version is none that this was made for; else "".
std::string version_warning(const std::string& version);

}  // namespace systole

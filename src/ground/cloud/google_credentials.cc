#include "ground/cloud/google_credentials.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "ground/base/files.h"
#include "ground/base/text_file.h"
#include "ground/cloud/google_requests.h"

namespace systole {
namespace {

constexpr Bytes kMostFile{1 << 20};
constexpr Seconds kForGood{1e9}, kReadAgain{300.0};

std::string without_spaces(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

// Where tokens come from; each call of fetch gives a new one.
class Fetcher {
 public:
  explicit Fetcher(GooglePlace place)
      : place_(std::move(place)), pool_(place_.trust, 2), requests_{pool_, *place_.clock, place_.retries} {}

  Result<BearerToken> fetch() {
    const Variables& get = place_.variables;
    if (const auto off = get("CLOUDSDK_AUTH_DISABLE_CREDENTIALS");
        off && *off != "0" && *off != "false" && *off != "False")
      return BearerToken{"", kForGood};
    if (const auto token = get("CLOUDSDK_AUTH_ACCESS_TOKEN")) return BearerToken{without_spaces(*token), kForGood};
    if (const auto file = get("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE"))
      return BearerToken{without_spaces(TRY(read_secret_file(*file, kMostFile))), kReadAgain};
    if (const auto file = get("GOOGLE_APPLICATION_CREDENTIALS")) return of_file(*file);
    if (const std::string file = file_of_gcloud(); !file.empty() && path_exists(file)) return of_file(file);
    const auto host = get("GCE_METADATA_HOST");
    Result<BearerToken> token = requests_.of_metadata(host.value_or("metadata.google.internal"));
    if (!token.ok() && token.error().kind == ErrorKind::not_found && !host) return BearerToken{"", kForGood};
    return token;
  }

 private:
  std::string file_of_gcloud() const {
    if (const auto folder = place_.variables("CLOUDSDK_CONFIG")) return *folder + "/" + kFile;
    const auto home = place_.variables("HOME");
    return home ? fmt::format("{}/.config/gcloud/{}", *home, kFile) : "";
  }

  Result<BearerToken> of_file(const std::string& path) {
    const std::string text = TRY(read_secret_file(path, kMostFile));
    Result<Node> file = parse_json(text, path);
    if (!file.ok() || !file->is_map())  // the parser's message could repeat a part of the key
      return error(ErrorKind::invalid, "'{}' holds no credentials: it is not JSON", path)
          .hinted("gcloud auth application-default login; or a key: gcloud iam service-accounts keys create");
    return of(*file, fmt::format("'{}'", path), 0);
  }

  Result<BearerToken> of(const Node& file, const std::string& name, int depth) {
    const std::string type = file.text_at("type");
    if (type == "service_account") return requests_.of_service_account(file, name);
    if (type == "authorized_user") return requests_.of_user(file, name);
    if (type == "impersonated_service_account" && depth < 4) {
      const Node* source = file.find("source_credentials");
      if (source == nullptr) return error(ErrorKind::invalid, "{} has no source_credentials", name);
      const BearerToken token = TRY(of(*source, name, depth + 1));
      return requests_.of_impersonated(file, name, token.text);
    }
    return error(ErrorKind::unsupported, "{} holds credentials of the type '{}'", name, type)
        .hinted(
            "service_account, authorized_user or impersonated_service_account: gcloud auth application-default login");
  }

  static constexpr const char* kFile = "application_default_credentials.json";

  const GooglePlace place_;
  HttpPool pool_;
  const GoogleRequests requests_;
};

// Anonymous is the empty token, which RefreshedBearer would ask for each time.
class GoogleBearer : public BearerSource {
 public:
  explicit GoogleBearer(GooglePlace place)
      : fetcher_(place), clock_(place.clock), bearer_([this] { return fetched(); }, std::move(place.clock)) {}

  Result<std::string> token() override {
    if (anonymous_) return std::string();
    return bearer_.token();
  }
  // A server wants a token where none was found: the metadata server may have failed just then.
  void refused(const std::string& token) override {
    bearer_.refused(token);
    const std::lock_guard lock(mutex_);
    if (!token.empty() || clock_->now() < look_again_) return;
    look_again_ = clock_->now() + kPause;
    anonymous_ = false;
  }

 private:
  Result<BearerToken> fetched() {
    BearerToken token = TRY(fetcher_.fetch());
    anonymous_ = token.text.empty();
    return token;
  }

  static constexpr Seconds kPause{10.0};  // between two looks where nothing is found

  Fetcher fetcher_;
  const std::shared_ptr<Clock> clock_;
  std::atomic<bool> anonymous_ = false;
  std::mutex mutex_;
  Seconds look_again_{};
  RefreshedBearer bearer_;
};

}  // namespace

Variables variables_of_process() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == 0) return std::nullopt;
    return std::string(value);
  };
}

std::shared_ptr<BearerSource> google_bearer(GooglePlace place) {
  return std::make_shared<GoogleBearer>(std::move(place));
}

std::string quota_project(const Variables& variables) { return variables("GOOGLE_CLOUD_QUOTA_PROJECT").value_or(""); }

}  // namespace systole

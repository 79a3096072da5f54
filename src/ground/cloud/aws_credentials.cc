#include "ground/cloud/aws_credentials.h"

#include "ground/base/text_file.h"
#include "ground/cloud/aws_profiles.h"
#include "ground/cloud/aws_requests.h"
#include "ground/cloud/refreshed_bearer.h"
#include "ground/net/socket.h"
#include "ground/net/url.h"

namespace systole {
namespace {

constexpr Bytes kMostToken{1 << 20};
constexpr Seconds kForGood{1e9}, kEarly{300.0};
constexpr int kDeepest = 8;  // profiles whose source is another one

bool is_on(const std::optional<std::string>& value) {
  return value && *value != "0" && *value != "false" && *value != "False" && *value != "FALSE" && *value != "NO";
}

std::string without_end(std::string text, std::string_view ends) {
  while (!text.empty() && ends.find(text.back()) != ends.npos) text.pop_back();
  return text;
}

// One text of keys, and back: what RefreshedBearer keeps.
std::string joined(const AwsKeys& keys) { return keys.id + "\n" + keys.secret + "\n" + keys.session; }
AwsKeys split(const std::string& text) {
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  return {text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

// A container's agent may be asked in the clear on this machine and at the two addresses that AWS gives it.
bool may_be_asked(const std::string& url) {
  const UrlParts parts(url);
  const std::string host = parts.bare_host();
  return parts.scheme == "https://" || is_loopback(host) || host == "169.254.170.2" || host == "169.254.170.23" ||
         host == "fd00:ec2::23";
}

class Fetcher {
 public:
  explicit Fetcher(AwsPlace place) : place_(std::move(place)), pool_(place_.trust, 2) {}

  Result<TemporaryKeys> fetch() const {
    if (is_on(get("AWS_NO_SIGN_REQUEST"))) return TemporaryKeys{{}, kForGood};
    if (const auto id = get("AWS_ACCESS_KEY_ID")) {
      const auto secret = get("AWS_SECRET_ACCESS_KEY");
      if (!secret) return error(ErrorKind::invalid, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not");
      return TemporaryKeys{{*id, *secret, get("AWS_SESSION_TOKEN").value_or("")}, kForGood};
    }
    const AwsProfiles profiles = TRY(AwsProfiles::read(place_.variables));
    const std::string profile = aws_profile(place_.variables);
    const AwsRequests requests = TRY(requests_of(profiles, profile));
    if (const auto file = get("AWS_WEB_IDENTITY_TOKEN_FILE"))
      return of_token_file(requests, *file, get("AWS_ROLE_ARN").value_or(""),
                           get("AWS_ROLE_SESSION_NAME").value_or(""));
    if (profiles.has(profile)) {
      const auto keys = TRY(of_profile(requests, profiles, profile, 0));
      if (keys) return *keys;
    } else if (get("AWS_PROFILE")) {
      return error(ErrorKind::not_found, "AWS_PROFILE is '{}', and {} have no such profile", profile, profiles.files())
          .hinted(fmt::format("aws configure --profile {}", profile));
    }
    return of_surroundings(requests);
  }

 private:
  std::optional<std::string> get(const char* name) const { return place_.variables(name); }

  Result<AwsRequests> requests_of(const AwsProfiles& profiles, const std::string& profile) const {
    const AwsSettings settings = TRY(aws_settings(place_.variables));
    AwsRequests requests{pool_, *place_.clock, place_.retries, settings.region, ""};
    for (const std::string& url : {get("AWS_ENDPOINT_URL_STS").value_or(""), get("AWS_ENDPOINT_URL").value_or(""),
                                   profiles.get(profile, "endpoint_url")})
      if (requests.sts_endpoint.empty()) requests.sts_endpoint = without_end(url, "/");
    return requests;
  }

  Result<TemporaryKeys> of_token_file(const AwsRequests& requests, const std::string& file, const std::string& role,
                                      const std::string& session) const {
    if (role.empty())
      return error(ErrorKind::invalid, "a web identity in '{}' has no role", file).hinted("AWS_ROLE_ARN");
    // Kubernetes lets the pod's group read it.
    const std::string token = without_end(TRY(read_secret_file(file, kMostToken)), "\r\n ");
    return requests.of_web_identity({role, session.empty() ? "systole" : session}, token);
  }

  // Nothing: the profile has no credentials.
  Result<std::optional<TemporaryKeys>> of_profile(const AwsRequests& requests, const AwsProfiles& profiles,
                                                  const std::string& profile, int depth) const {
    const auto value = [&](const char* key) { return profiles.get(profile, key); };
    const std::string role = value("role_arn"), source = value("source_profile"),
                      file = value("web_identity_token_file");
    if (!role.empty() && !file.empty())
      return std::optional(TRY(of_token_file(requests, file, role, value("role_session_name"))));
    const bool is_own = source == profile;  // a role of the profile's own keys
    if (!role.empty() && !source.empty() && !(is_own && depth > 0)) {
      if (depth == kDeepest) return error(ErrorKind::invalid, "the profile '{}' is a source of itself", profile);
      const auto keys =
          is_own ? TRY(static_keys(profiles, profile)) : TRY(of_profile(requests, profiles, source, depth + 1));
      if (!keys) return error(ErrorKind::invalid, "the profile '{}', which '{}' is of, has no keys", source, profile);
      const std::string session = value("role_session_name");
      return std::optional(
          TRY(requests.of_role({role, session.empty() ? "systole" : session, value("external_id")}, keys->keys)));
    }
    if (auto keys = TRY(static_keys(profiles, profile))) return keys;
    for (const char* key : {"credential_process", "sso_session", "sso_start_url", "credential_source"}) {
      if (value(key).empty()) continue;
      return error(ErrorKind::unsupported, "the profile '{}' has its keys by {}", profile, key)
          .hinted(fmt::format("eval \"$(aws configure export-credentials --profile {} --format env)\"", profile));
    }
    return std::optional<TemporaryKeys>();
  }

  static Result<std::optional<TemporaryKeys>> static_keys(const AwsProfiles& profiles, const std::string& profile) {
    const std::string id = profiles.get(profile, "aws_access_key_id");
    const std::string secret = profiles.get(profile, "aws_secret_access_key");
    if (id.empty() && secret.empty()) return std::optional<TemporaryKeys>();
    if (id.empty() || secret.empty())
      return error(ErrorKind::invalid, "the profile '{}' of {} has half of its keys", profile, profiles.files());
    return std::optional(TemporaryKeys{{id, secret, profiles.get(profile, "aws_session_token")}, kForGood});
  }

  Result<TemporaryKeys> of_surroundings(const AwsRequests& requests) const {
    const auto relative = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
               full = get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (relative || full) {
      const std::string url = relative ? "http://169.254.170.2" + *relative : *full;
      if (!may_be_asked(url))
        return error(ErrorKind::invalid, "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither HTTPS nor on this machine");
      std::string authorization = get("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
      if (const auto file = get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
        authorization = without_end(TRY(read_secret_file(*file, kMostToken)), "\r\n");
      return requests.of_container(url, authorization);
    }
    Error none = error(ErrorKind::not_found, "there are no credentials of AWS");
    if (!is_on(get("AWS_EC2_METADATA_DISABLED"))) {
      const std::string endpoint = get("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
      Result<TemporaryKeys> keys = requests.of_machine(without_end(endpoint, "/"));
      if (keys.ok() || keys.error().kind != ErrorKind::not_found) return keys;
      none.message += fmt::format("; {}", keys.error().message);
    }
    return std::move(none).hinted(
        "aws configure; or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for a public bucket "
        "AWS_NO_SIGN_REQUEST=true");
  }

  const AwsPlace place_;
  mutable HttpPool pool_;
};

class FoundKeys : public AwsKeySource {
 public:
  explicit FoundKeys(AwsPlace place)
      : fetcher_(place),
        kept_(
            [this]() -> Result<BearerToken> {
              const TemporaryKeys found = TRY(fetcher_.fetch());
              return BearerToken{joined(found.keys), found.lasts};
            },
            place.clock, kEarly) {}
  Result<AwsKeys> keys() override { return split(TRY(kept_.token())); }
  void refused(const AwsKeys& keys) override { kept_.refused(joined(keys)); }

 private:
  const Fetcher fetcher_;
  RefreshedBearer kept_;
};

}  // namespace

std::shared_ptr<AwsKeySource> aws_keys(AwsPlace place) { return std::make_shared<FoundKeys>(std::move(place)); }

Result<AwsSettings> aws_settings(const Variables& variables) {
  const AwsProfiles profiles = TRY(AwsProfiles::read(variables));
  const auto first = [&](std::initializer_list<const char*> names, const char* key) {
    for (const char* name : names)
      if (const auto value = variables(name)) return *value;
    return profiles.get(aws_profile(variables), key);
  };
  AwsSettings settings;
  if (const std::string region = first({"AWS_REGION", "AWS_DEFAULT_REGION"}, "region"); !region.empty())
    settings.region = region;
  settings.s3_endpoint = without_end(first({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, "endpoint_url"), "/");
  settings.ca_bundle = first({"AWS_CA_BUNDLE"}, "ca_bundle");
  const bool is_url = settings.s3_endpoint.starts_with("http://") || settings.s3_endpoint.starts_with("https://");
  if (!settings.s3_endpoint.empty() && !is_url)
    return error(ErrorKind::invalid, "AWS_ENDPOINT_URL is no URL of the form https://HOST[:PORT]");
  return settings;
}

}  // namespace systole

#include "ground/cloud/google_requests.h"

#include <algorithm>

#include "ground/base/iso_time.h"
#include "ground/base/number_from.h"
#include "ground/base/shown_text.h"
#include "ground/cloud/jwt.h"
#include "ground/net/url.h"

namespace systole {
namespace {

constexpr const char* kScope = "https://www.googleapis.com/auth/cloud-platform";
constexpr const char* kTokens = "https://oauth2.googleapis.com/token";
constexpr std::int64_t kLasts = 3600;  // seconds that are asked for, the most there is

Error no_answer(const std::string& name) {
  return error(ErrorKind::io, "the credentials of {}: what answers gives no token", name);
}

Result<BearerToken> token_in(const Node& answer, const std::string& name) {
  BearerToken token{answer.text_at("access_token"), Seconds(number_from(answer.text_at("expires_in")).value_or(0))};
  if (token.text.empty() || token.lasts <= Seconds()) return no_answer(name);
  return token;
}

}  // namespace

Result<std::string> field_of(const Node& file, const char* key, const std::string& name) {
  std::string text = file.text_at(key);
  if (text.empty()) return error(ErrorKind::invalid, "{} has no {}", name, key);
  return text;
}

Result<Node> GoogleRequests::answer(const HttpReply& reply, const std::string& name) const {
  const Result<Node> body = parse_json(reply.body, "answer");
  if (reply.status == 200 && body.ok()) return *body;
  if (reply.status / 100 == 2) return no_answer(name);
  std::string why = body.ok() ? body->text_at("error") : "";
  if (body.ok() && !body->text_at("error_description").empty()) why += ": " + body->text_at("error_description");
  if (const Node* fault = body.ok() ? body->find("error") : nullptr; fault != nullptr && fault->is_map())
    why = fault->text_at("message");
  return error(ErrorKind::unsupported, "the credentials of {} are refused: status {}{}{}", name, reply.status,
               why.empty() ? "" : ", ", printable(why.substr(0, 200)))
      .hinted("gcloud auth application-default login; or another key in GOOGLE_APPLICATION_CREDENTIALS")
      .coded(ErrorCode::not_authenticated);
}

Result<BearerToken> GoogleRequests::post_form(const std::string& url, const std::string& form,
                                              const std::string& name) const {
  TRY(check_bearer_url(url));
  const auto request = [&]() -> Result<HttpRequest> {
    return HttpRequest{.method = "POST",
                       .url = url,
                       .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                       .body = form,
                       .most = Bytes(1 << 20)};
  };
  const HttpReply reply = std::move(TRY(send_with_retries(pool, retries, clock, request)).reply);
  return token_in(TRY(answer(reply, name)), name);
}

Result<BearerToken> GoogleRequests::of_service_account(const Node& file, const std::string& name) const {
  const std::string key = TRY(field_of(file, "private_key", name)), who = TRY(field_of(file, "client_email", name));
  const std::string url = file.text_at("token_uri").empty() ? kTokens : file.text_at("token_uri");
  Node header = Node::map({{"alg", "RS256"}, {"typ", "JWT"}});
  if (const std::string id = file.text_at("private_key_id"); !id.empty()) header.set("kid", id);
  const std::int64_t now = clock.unix_time();
  const Node claims = Node::map({{"iss", who}, {"scope", kScope}, {"aud", url}, {"iat", now}, {"exp", now + kLasts}});
  Result<std::string> jwt = signed_jwt(header, claims, key);
  if (!jwt.ok()) return error(ErrorKind::invalid, "{}: {}", name, jwt.error().message);
  return post_form(url, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + *jwt, name);
}

Result<BearerToken> GoogleRequests::of_user(const Node& file, const std::string& name) const {
  std::string form = "grant_type=refresh_token";
  for (const char* key : {"client_id", "client_secret", "refresh_token"})
    form += fmt::format("&{}={}", key, url_encoded(TRY(field_of(file, key, name))));
  return post_form(file.text_at("token_uri").empty() ? kTokens : file.text_at("token_uri"), form, name);
}

Result<BearerToken> GoogleRequests::of_impersonated(const Node& file, const std::string& name,
                                                    const std::string& source) const {
  const std::string url = TRY(field_of(file, "service_account_impersonation_url", name));
  TRY(check_bearer_url(url));
  Node asked = Node::map({{"scope", Node::sequence({kScope})}, {"lifetime", fmt::format("{}s", kLasts)}});
  if (const Node* delegates = file.find("delegates"); delegates != nullptr && delegates->is_sequence())
    asked.set("delegates", *delegates);
  const auto request = [&]() -> Result<HttpRequest> {
    return HttpRequest{.method = "POST",
                       .url = url,
                       .headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer " + source}},
                       .body = to_json(asked),
                       .most = Bytes(1 << 20)};
  };
  const HttpReply reply = std::move(TRY(send_with_retries(pool, retries, clock, request)).reply);
  const Node said = TRY(answer(reply, name));
  const auto ends = from_iso8601(said.text_at("expireTime"));
  BearerToken token{said.text_at("accessToken"), Seconds()};
  if (ends.ok()) token.lasts = Seconds(std::chrono::duration<double>(*ends - clock.calendar()).count());
  if (token.text.empty() || token.lasts <= Seconds()) return no_answer(name);
  return token;
}

Result<BearerToken> GoogleRequests::of_metadata(const std::string& host) const {
  const std::string name = fmt::format("the metadata server {}", host);
  const HttpRequest request{
      .url = fmt::format("http://{}/computeMetadata/v1/instance/service-accounts/default/token", host),
      .headers = {{"Metadata-Flavor", "Google"}},
      .timeout = Seconds(10.0),
      .connect_timeout = Seconds(1.0),
      .most = Bytes(1 << 20)};
  // One try of the connection: elsewhere than on Google's machines there is no such server.
  Result<HttpReply> first = pool.send(request);
  if (!first.ok() && first.error().kind == ErrorKind::io)
    return error(ErrorKind::not_found, "{}", first.error().message);
  HttpReply reply = TRY(std::move(first));
  if (is_retried(reply.status))
    reply =
        std::move(TRY(send_with_retries(pool, retries, clock, [&]() -> Result<HttpRequest> { return request; })).reply);
  if (reply.status == 404) {
    return error(ErrorKind::unsupported, "this machine has no service account: {} knows none", name)
        .hinted("give the machine one, or GOOGLE_APPLICATION_CREDENTIALS=KEY.json")
        .coded(ErrorCode::not_authenticated);
  }
  return token_in(TRY(answer(reply, name)), name);
}

}  // namespace systole

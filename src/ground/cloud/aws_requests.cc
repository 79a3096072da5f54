#include "ground/cloud/aws_requests.h"

#include "ground/base/document.h"
#include "ground/base/iso_time.h"
#include "ground/base/shown_text.h"
#include "ground/base/xml.h"
#include "ground/net/bearer.h"
#include "ground/net/url.h"

namespace systole {
namespace {

constexpr Bytes kMostAnswer{1 << 20};

std::string place_of(const std::string& url) {
  const UrlParts parts(url);
  return parts.host + parts.port;
}

Error no_keys(const std::string& name) { return error(ErrorKind::corrupt, "{} answers without keys", name); }

}  // namespace

Result<TemporaryKeys> AwsRequests::checked(AwsKeys keys, const std::string& ends, const std::string& name) const {
  if (keys.id.empty() || keys.secret.empty()) return no_keys(name);
  if (ends.empty()) return TemporaryKeys{std::move(keys), Seconds(3600.0)};
  const auto end = from_iso8601(ends);
  if (!end.ok()) return no_keys(name);
  const Seconds lasts(std::chrono::duration<double>(*end - clock.calendar()).count());
  if (lasts.count() <= 0)
    return error(ErrorKind::io, "{} gives keys that have ended at {}", name, printable(ends))
        .hinted("look at this machine's clock");
  return TemporaryKeys{std::move(keys), lasts};
}

Result<TemporaryKeys> AwsRequests::of_json(const HttpReply& reply, const std::string& name) const {
  const Result<Node> read = parse_json(reply.body, name);
  if (!read.ok() || !read->is_map()) return no_keys(name);  // the parser's message could repeat a secret
  return checked({read->text_at("AccessKeyId"), read->text_at("SecretAccessKey"), read->text_at("Token")},
                 read->text_at("Expiration"), name);
}

Result<TemporaryKeys> AwsRequests::of_sts(const std::string& form, const AwsKeys* source) const {
  const std::string amazon = region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  const std::string url =
      (sts_endpoint.empty() ? fmt::format("https://sts.{}.{}", region, amazon) : sts_endpoint) + "/";
  TRY(check_bearer_url(url));
  const HttpSent sent = TRY(send_with_retries(pool, retries, clock, [&]() -> Result<HttpRequest> {
    HttpRequest request{.method = "POST", .url = url, .borrowed_body = form, .most = kMostAnswer};
    request.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
    if (source != nullptr) sign_aws(request, *source, {region, "sts"}, payload_hash(form), clock.calendar());
    return request;
  }));
  const std::string name = fmt::format("STS at {}", place_of(url));
  const Result<XmlElement> root = parse_xml(sent.reply.body, name);
  if (sent.reply.status != 200) {
    const XmlElement* why = root.ok() ? root->find("Error") : nullptr;
    return error(ErrorKind::unsupported, "{} gives no keys: status {} {}", name, sent.reply.status,
                 why == nullptr ? "" : printable(why->text_of("Code")))
        .hinted("check the role's ARN, and that its trust policy names this identity");
  }
  const XmlElement* result = nullptr;
  if (root.ok()) {
    for (const XmlElement& child : root->children)
      if (child.name.ends_with("Result")) result = child.find("Credentials");
  }
  if (result == nullptr) return no_keys(name);
  return checked({result->text_of("AccessKeyId"), result->text_of("SecretAccessKey"), result->text_of("SessionToken")},
                 result->text_of("Expiration"), name);
}

Result<TemporaryKeys> AwsRequests::of_web_identity(const AssumedRole& role, const std::string& token) const {
  return of_sts(fmt::format("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&"
                            "WebIdentityToken={}",
                            url_encoded(role.arn), url_encoded(role.session), url_encoded(token)),
                nullptr);
}

Result<TemporaryKeys> AwsRequests::of_role(const AssumedRole& role, const AwsKeys& source) const {
  std::string form = fmt::format("Action=AssumeRole&Version=2011-06-15&RoleArn={}&RoleSessionName={}",
                                 url_encoded(role.arn), url_encoded(role.session));
  if (!role.external_id.empty()) form += "&ExternalId=" + url_encoded(role.external_id);
  return of_sts(form, &source);
}

Result<TemporaryKeys> AwsRequests::of_container(const std::string& url, const std::string& authorization) const {
  const HttpSent sent = TRY(send_with_retries(pool, retries, clock, [&]() -> Result<HttpRequest> {
    HttpRequest request{.url = url, .timeout = Seconds(5.0), .connect_timeout = Seconds(2.0), .most = kMostAnswer};
    if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
    return request;
  }));
  const std::string name = fmt::format("the container's credentials at {}", place_of(url));
  if (sent.reply.status == 200) return of_json(sent.reply, name);
  return error(ErrorKind::unsupported, "{}: status {}", name, sent.reply.status);
}

Result<TemporaryKeys> AwsRequests::of_machine(const std::string& endpoint) const {
  const std::string name = fmt::format("the metadata server at {}", place_of(endpoint));
  // A machine without such a server is told at once, so this one is not tried again.
  const Result<HttpReply> token = pool.send({.method = "PUT",
                                             .url = endpoint + "/latest/api/token",
                                             .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                                             .timeout = Seconds(2.0),
                                             .connect_timeout = Seconds(1.0),
                                             .most = kMostAnswer});
  if (!token.ok()) return error(ErrorKind::not_found, "there is no metadata server: {}", token.error().message);
  if (token->status != 200) return error(ErrorKind::not_found, "{}: status {} for a token", name, token->status);
  const auto get = [&](const std::string& path) {
    return send_with_retries(pool, retries, clock, [&]() -> Result<HttpRequest> {
      return HttpRequest{.url = endpoint + "/latest/meta-data/iam/security-credentials/" + path,
                         .headers = {{"X-aws-ec2-metadata-token", token->body}},
                         .timeout = Seconds(5.0),
                         .most = kMostAnswer};
    });
  };
  const HttpSent roles = TRY(get(""));
  const std::string role = roles.reply.body.substr(0, roles.reply.body.find('\n'));
  if (roles.reply.status != 200 || role.empty())
    return error(ErrorKind::not_found, "this machine has no role: {} answers with status {}", name, roles.reply.status)
        .hinted("give the instance an instance profile");
  const HttpSent keys = TRY(get(url_encoded(role)));
  if (keys.reply.status != 200) return error(ErrorKind::io, "{}: status {} for keys", name, keys.reply.status);
  return of_json(keys.reply, name);
}

}  // namespace systole

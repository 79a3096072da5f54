#include "ground/store/s3_api.h"

#include <algorithm>
#include <cstring>

#include "ground/base/shown_text.h"
#include "ground/base/xml.h"
#include "ground/net/url.h"

namespace systole {
namespace {

// A bucket that may be a name of the host: no dots, which certificates of "*.s3.amazonaws.com" do not cover.
bool is_host_label(std::string_view bucket) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return bucket.find_first_not_of(kLetters) == bucket.npos;
}

std::string amazon(std::string_view region) { return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com"; }

// The root of an error's document; nothing if it is none.
std::optional<XmlElement> error_in(std::string_view body) {
  Result<XmlElement> read = parse_xml(body, "");
  if (!read.ok() || read->name != "Error") return std::nullopt;
  return std::move(read).value();
}

bool has_expired(std::string_view code) {
  return code == "ExpiredToken" || code == "ExpiredTokenException" || code == "TokenRefreshRequired";
}

Error overtaken() { return error(ErrorKind::interrupted, "another read was faster"); }

HttpTrust trusted(HttpTrust trust, const std::string& authorities) {
  if (!authorities.empty()) trust.authorities = {"", authorities};
  return trust;
}

}  // namespace

std::string S3Answer::header(std::string_view name) const {
  const std::string* found = reply.header(name);
  return found == nullptr ? "" : *found;
}

S3Api::S3Api(std::string bucket, S3Access access, HttpTrust trust, RetryPolicy retries, std::shared_ptr<Clock> clock)
    : bucket_(std::move(bucket)),
      access_(std::move(access)),
      retries_(retries),
      clock_(clock ? std::move(clock) : std::shared_ptr<Clock>(real_clock())),
      pool_(trusted(std::move(trust), access_.authorities)) {}

std::string S3Api::url_of(const S3Call& call) const {
  std::string url = access_.endpoint;
  if (url.empty()) {
    const std::string host = fmt::format("s3.{}.{}", access_.region, amazon(access_.region));
    url = is_host_label(bucket_) ? fmt::format("https://{}.{}", bucket_, host)
                                 : fmt::format("https://{}/{}", host, bucket_);
  } else {
    url += "/" + bucket_;
  }
  url += "/" + url_encoded(call.key, true);
  char before = '?';
  for (const auto& [name, value] : call.query) {
    url += fmt::format("{}{}={}", before, url_encoded(name), url_encoded(value));
    before = '&';
  }
  return url;
}

void S3Api::add_encryption(HttpHeaders& headers) const {
  if (access_.encryption.empty()) return;
  headers.emplace_back("x-amz-server-side-encryption", access_.encryption);
  if (!access_.kms_key.empty()) headers.emplace_back("x-amz-server-side-encryption-aws-kms-key-id", access_.kms_key);
}

Result<HttpRequest> S3Api::request_of(const S3Call& call, const std::string& url, std::string_view hash,
                                      AwsKeys& keys) const {
  constexpr double kSlowest = 1e6;  // bytes a second of a connection that is still worth its time
  HttpRequest request{.method = call.method, .url = url, .headers = call.headers, .borrowed_body = call.body};
  const std::size_t bytes = call.body.size() + (call.into != nullptr ? call.into->size() : 0);
  request.bulk = bytes > (std::size_t{1} << 20);
  request.timeout = Seconds(60.0 + static_cast<double>(bytes) / kSlowest);
  request.most = call.most;
  request.headers.emplace_back("x-amz-content-sha256", hash);
  if (access_.requester_pays) request.headers.emplace_back("x-amz-request-payer", "requester");
  keys = access_.keys ? TRY(access_.keys->keys()) : AwsKeys();
  if (!keys.anonymous()) sign_aws(request, keys, {access_.region, "s3"}, hash, clock_->calendar());
  return request;
}

Result<S3Answer> S3Api::send_some(const S3Call& call, const std::string& url, std::string_view hash, AwsKeys& keys) {
  S3Answer answer;
  RetryPolicy retries = retries_;
  if (call.once) retries.total = Seconds(0.0);
  HttpSent sent = TRY(send_with_retries(pool_, retries, *clock_, [&]() -> Result<HttpRequest> {
    if (call.into != nullptr && call.into->is_closed()) return overtaken();
    HttpRequest request = TRY(request_of(call, url, hash, keys));
    answer.got = 0;
    if (call.into != nullptr) {
      request.take = [&](std::string_view piece) {
        const bool open = call.into->put(answer.got, piece);
        const bool fits = piece.size() <= call.into->size() - answer.got;
        answer.got += fits ? piece.size() : call.into->size() - answer.got;
        return open && fits;  // what follows was not asked for
      };
      request.cancelled = [&] { return call.into->is_closed(); };
    }
    return request;
  }));
  answer.reply = std::move(sent.reply);
  if (call.into != nullptr && call.into->is_closed()) return overtaken();
  answer.may_be_second = sent.may_be_second;
  return answer;
}

Result<S3Answer> S3Api::send(const S3Call& call) {
  const std::string url = url_of(call);
  // In the clear the signature covers the body too; under TLS its checksum does.
  const bool covers = !call.body.empty() && url.starts_with("http://");
  const std::string hash = covers              ? payload_hash(call.body)
                           : call.body.empty() ? payload_hash("")
                                               : std::string(kUnsignedPayload);
  Retries retries(retries_, *clock_);
  bool asked_anew = false, may_be_second = false;
  while (true) {
    AwsKeys keys;
    S3Answer answer = TRY(send_some(call, url, hash, keys));
    may_be_second = answer.may_be_second = answer.may_be_second || may_be_second;
    const bool has_error =
        !answer.good() || (call.method != "GET" && answer.reply.body.find("<Error>") != std::string::npos);
    if (!has_error) return answer;
    const std::optional<XmlElement> why = error_in(answer.reply.body);
    if (why) answer.code = why->text_of("Code");
    if (has_expired(answer.code) && access_.keys && !asked_anew) {
      access_.keys->refused(keys);
      asked_anew = true;
      continue;
    }
    const bool failed_late = answer.good();  // it began its answer before it knew
    if (!failed_late && answer.status() != 409) return answer;
    may_be_second = may_be_second || failed_late;
    if (call.once || !retries.wait()) return refusal(answer, fmt::format("s3://{}/{}", bucket_, call.key));
  }
}

Error S3Api::no_bucket() const {
  return error(ErrorKind::invalid, "there is no bucket '{}'{}", bucket_,
               access_.endpoint.empty() ? "" : " at " + without_passwords(access_.endpoint));
}

Error S3Api::refusal(const S3Answer& answer, std::string_view what) const {
  const std::optional<XmlElement> why = error_in(answer.reply.body);
  const std::string code = why ? why->text_of("Code") : "", message = why ? why->text_of("Message") : "";
  std::string region = answer.header("x-amz-bucket-region");
  if (region.empty() && why) region = why->text_of("Region");
  const std::string said =
      fmt::format("{}: status {}{}{}", what, answer.status(), code.empty() ? "" : " " + printable(code),
                  message.empty() ? "" : ", " + printable(message.substr(0, 300)));
  const bool elsewhere = answer.status() / 100 == 3 || answer.status() == 400;
  if (elsewhere && !region.empty() && region != access_.region) {
    return error(ErrorKind::invalid, "the bucket '{}' is in {}, and the request went to {}", bucket_, printable(region),
                 access_.region)
        .hinted(fmt::format("AWS_REGION={}", printable(region)));
  }
  if (code == "NoSuchBucket") return no_bucket();
  if (code == "SignatureDoesNotMatch" || code == "InvalidAccessKeyId" || has_expired(code) || code == "InvalidToken")
    return error(ErrorKind::unsupported, "{}", said)
        .hinted("check the AWS credentials: AWS_ACCESS_KEY_ID, AWS_PROFILE")
        .coded(ErrorCode::not_authenticated);
  if (code == "RequestTimeTooSkewed") return error(ErrorKind::io, "{}", said).hinted("set this machine's clock");
  if (answer.status() == 401 || answer.status() == 403) {
    return error(ErrorKind::unsupported, "{}", said)
        .coded(ErrorCode::forbidden)
        .hinted(access_.keys ? "the credentials need s3:GetObject, PutObject, DeleteObject and ListBucket there"
                             : "the request was anonymous: give it AWS credentials");
  }
  if (answer.status() == 404) return error(ErrorKind::not_found, "there is no object '{}'", what);
  if (!why && !answer.reply.body.empty())
    return error(ErrorKind::io, "{}: the answer is not one of S3", said).hinted("look at AWS_ENDPOINT_URL");
  return error(ErrorKind::io, "{}", said);
}

}  // namespace systole

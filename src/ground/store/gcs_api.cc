#include "ground/store/gcs_api.h"

#include <algorithm>

#include "ground/base/shown_text.h"
#include "ground/net/url.h"
#include "ground/store/bucket_answers.h"
#include "ground/store/cloud_stores.h"
#include "ground/store/object_facts.h"
#include "ground/store/path.h"

namespace systole {
namespace {

bool is_bucket(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  return name.size() >= 3 && name.size() <= 222 && name.find_first_not_of(kLetters) == name.npos &&
         name.front() != '.' && name.front() != '-';
}

// The message of {"error": {"message": …}}, or the first words of another body.
std::string message_in(const HttpReply& reply) {
  const Result<Node> body = parse_json(reply.body, "answer");
  const Node* fault = body.ok() ? body->find("error") : nullptr;
  std::string message = fault != nullptr ? fault->text_at("message") : "";
  if (fault != nullptr && message.empty() && fault->is_scalar()) message = fault->text();
  if (message.empty()) message = reply.body.substr(0, 120);
  std::ranges::replace(message, '\n', ' ');
  return printable(message);
}

}  // namespace

std::optional<std::uint32_t> crc32c_in(const HttpReply& reply) {
  constexpr std::string_view kSum = "crc32c=";
  for (const auto& [name, value] : reply.headers) {
    if (name != "x-goog-hash") continue;
    const std::size_t at = value.find(kSum);
    if (at == value.npos) continue;
    const std::size_t begin = at + kSum.size();
    return read_crc32c_text(std::string_view(value).substr(begin, value.find(',', begin) - begin));
  }
  return std::nullopt;
}

Result<GcsObject> read_gcs_object(const HttpReply& reply, std::string_view asked) {
  const Result<Node> body = parse_json(reply.body, "answer");
  const std::optional<Bytes> size = body.ok() ? size_from(body->text_at("size")) : std::nullopt;
  GcsObject object;
  if (body.ok()) object.generation = body->text_at("generation");
  if (!size || object.generation.empty())
    return error(ErrorKind::io, "'{}': this is no answer of Cloud Storage: {}", asked, message_in(reply))
        .hinted("check the endpoint: STORAGE_EMULATOR_HOST, CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE");
  object.name = body->text_at("name");
  object.size = *size;
  object.crc32c = read_crc32c_text(body->text_at("crc32c"));
  if (const Node* metadata = body->find("metadata"); metadata != nullptr)
    object.mark = metadata->text_at("systole-write");
  return object;
}

GcsApi::GcsApi(std::string bucket, std::string prefix, GcsAccess gcs, const StoreAccess& access)
    : bucket_(std::move(bucket)),
      prefix_(std::move(prefix)),
      gcs_(std::move(gcs)),
      retries_(access.retries),
      clock_(access.clock ? access.clock : std::shared_ptr<Clock>(real_clock())),
      pool_(access.trust) {}

Status check_gcs_place(const std::string& place) {
  const std::size_t slash = place.find('/');
  if (is_bucket(std::string_view(place).substr(0, slash)))
    return slash == place.npos ? Status() : check_dir_path(std::string_view(place).substr(slash + 1));
  return error(ErrorKind::invalid, "'gs://{}' names no bucket", printable(place))
      .hinted("gs://BUCKET/FOLDER; a bucket has 3 to 63 lower-case letters, digits, '-', '_' and '.'");
}

Result<std::shared_ptr<GcsApi>> GcsApi::open(const std::string& place, GcsAccess gcs, const StoreAccess& access) {
  TRY(check_gcs_place(place));
  const std::size_t slash = place.find('/');
  std::string prefix = slash == place.npos ? "" : place.substr(slash + 1);
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  CHECK(gcs.part > 0 && gcs.part % (256 << 10) == 0, "parts of {} bytes", gcs.part);
  return std::shared_ptr<GcsApi>(new GcsApi(place.substr(0, slash), std::move(prefix), std::move(gcs), access));
}

std::string GcsApi::shown(std::string_view path) const { return fmt::format("gs://{}/{}{}", bucket_, prefix_, path); }

std::string GcsApi::paid(std::string url, std::string query) const {
  if (!gcs_.user_project.empty()) {
    if (!query.empty()) query += '&';
    query += "userProject=" + url_encoded(gcs_.user_project);
  }
  return query.empty() ? url : url + "?" + query;
}

std::string GcsApi::object_url(std::string_view name, std::string query) const {
  return paid(fmt::format("{}/storage/v1/b/{}/o/{}", gcs_.endpoint, bucket_, url_encoded(name)), std::move(query));
}
std::string GcsApi::list_url(std::string query) const {
  return paid(fmt::format("{}/storage/v1/b/{}/o", gcs_.endpoint, bucket_), std::move(query));
}
std::string GcsApi::upload_url(std::string query) const {
  if (!gcs_.kms_key.empty()) query += "&kmsKeyName=" + url_encoded(gcs_.kms_key);
  return paid(fmt::format("{}/upload/storage/v1/b/{}/o", gcs_.endpoint, bucket_), std::move(query));
}
std::string GcsApi::rewrite_url(std::string_view from, std::string_view to, std::string query) const {
  if (!gcs_.kms_key.empty()) query += "&destinationKmsKeyName=" + url_encoded(gcs_.kms_key);
  return paid(fmt::format("{0}/storage/v1/b/{1}/o/{2}/rewriteTo/b/{1}/o/{3}", gcs_.endpoint, bucket_, url_encoded(from),
                          url_encoded(to)),
              std::move(query));
}

Result<HttpSent> GcsApi::send(const GcsAsk& ask) {
  RetryPolicy policy = retries_;
  if (ask.once) policy.total = Seconds(-1.0);
  const bool shows = gcs_.bearer != nullptr && !ask.is_own_address;
  std::string token;
  const auto make = [&]() -> Result<HttpRequest> {
    HttpRequest request{.method = ask.method,
                        .url = ask.url,
                        .headers = ask.headers,
                        .body = ask.body,
                        .borrowed_body = ask.borrowed_body,
                        .timeout = Seconds(0.0),
                        .connect_timeout = Seconds(10.0),
                        .idle = Seconds(30.0)};
    if (shows) token = TRY(gcs_.bearer->token());
    if (shows && !token.empty()) request.headers.emplace_back("Authorization", "Bearer " + token);
    if (ask.begin) TRY(ask.begin(request));
    return request;
  };
  HttpSent sent = TRY(send_with_retries(pool_, policy, *clock_, make));
  if (sent.reply.status != 401 || !shows) return sent;  // also where none was shown: there may be one by now
  gcs_.bearer->refused(token);
  const std::string refused = token;
  if (TRY(gcs_.bearer->token()) == refused) return sent;
  HttpSent again = TRY(send_with_retries(pool_, policy, *clock_, make));
  again.may_be_second = again.may_be_second || sent.may_be_second;
  return again;
}

Error GcsApi::refusal(const HttpReply& reply, std::string_view path, std::string_view doing) const {
  const std::string what = path.empty() ? fmt::format("gs://{}", bucket_) : shown(path);
  const std::string says = message_in(reply);
  const auto no = [&](ErrorKind kind) { return error(kind, "cannot {} {}: {}", doing, what, says); };
  switch (reply.status) {
    case 401:
      return no(ErrorKind::unsupported)
          .hinted("gcloud auth application-default login; or GOOGLE_APPLICATION_CREDENTIALS=KEY.json")
          .coded(ErrorCode::not_authenticated);
    case 403:
      return no(ErrorKind::unsupported)
          .hinted(
              fmt::format("the caller needs roles/storage.objectUser: gcloud storage buckets add-iam-policy-binding "
                          "gs://{} --member=MEMBER --role=roles/storage.objectUser",
                          bucket_))
          .coded(ErrorCode::forbidden);
    case 404:
      return no(ErrorKind::not_found).hinted(fmt::format("gcloud storage ls gs://{} lists what there is", bucket_));
    case 412: return no(ErrorKind::busy);
    case 400:
      if (says.find("requester pays") != says.npos)
        return no(ErrorKind::unsupported).hinted("GOOGLE_CLOUD_QUOTA_PROJECT=PROJECT names the project that pays");
      return no(says.find("CRC32C") != says.npos ? ErrorKind::corrupt : ErrorKind::invalid);
    default: {
      const bool elsewhere = reply.status / 100 == 3;  // another endpoint's bucket, or a login page
      return error(ErrorKind::io, "cannot {} {}: status {}, {}", doing, what, reply.status, says)
          .hinted(elsewhere ? "check the endpoint: STORAGE_EMULATOR_HOST, CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"
                            : "");
    }
  }
}

Result<GcsObject> GcsApi::describe(std::string_view path) {
  const GcsAsk ask{.url = object_url(name_of(path), "fields=name,size,generation,crc32c,metadata")};
  const HttpReply reply = std::move(TRY(send(ask)).reply);
  if (reply.status != 200) return refusal(reply, path, "read");
  return read_gcs_object(reply, shown(path));
}

Result<HttpSent> GcsApi::erase(std::string_view name, const std::string& generation, bool once) {
  const std::string query = generation.empty() ? "" : "ifGenerationMatch=" + url_encoded(generation);
  return send({.method = "DELETE", .url = object_url(name, query), .once = once});
}

}  // namespace systole

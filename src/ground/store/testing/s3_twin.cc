#include "ground/store/testing/s3_twin.h"

#include <charconv>

#include "ground/base/hash.h"
#include "ground/base/iso_time.h"
#include "ground/base/number_from.h"
#include "ground/base/xml.h"
#include "ground/net/url.h"
#include "ground/store/cloud_stores.h"
#include "ground/store/object_facts.h"
#include "ground/store/s3_api.h"

namespace systole {

struct S3Twin::Reply {
  int status = 200;
  std::string body = {};
  HttpHeaders headers = {};
};

namespace {

const AwsKeys kKeys{"AKIDTWIN", "secret/of+the=twin", ""};

class FixedKeys : public AwsKeySource {
 public:
  Result<AwsKeys> keys() override { return kKeys; }
};

std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int byte = 0;
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

std::map<std::string, std::string> query_of(std::string_view text) {
  std::map<std::string, std::string> query;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = std::min(part.find('='), part.size());
    query[decoded(part.substr(0, equals))] = decoded(part.substr(std::min(part.size(), equals + 1)));
  }
  return query;
}

std::string error_body(std::string_view code, std::string_view more = "") {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>the twin says {}</Message>"
      "{}<RequestId>1</RequestId></Error>",
      code, code, more);
}

std::uint32_t crc_of(const std::string& bytes) { return crc32c(std::as_bytes(std::span(bytes))); }

std::string etag_of(const std::string& bytes, const std::string& suffix) {
  return fmt::format("\"{}{}\"", payload_hash(bytes).substr(0, 32), suffix);
}

// "20130524T000000Z"
std::chrono::system_clock::time_point time_of(const std::string& date) {
  if (date.size() != 16) return {};
  return from_iso8601(fmt::format("{}-{}-{}T{}:{}:{}Z", date.substr(0, 4), date.substr(4, 2), date.substr(6, 2),
                                  date.substr(9, 2), date.substr(11, 2), date.substr(13, 2)))
      .value();
}

std::string between(const std::string& text, std::string_view before, char end) {
  const std::size_t at = text.find(before);
  if (at == text.npos) return "";
  const std::size_t begin = at + before.size();
  return text.substr(begin, text.find(end, begin) - begin);
}

bool is_signed(const StubRequest& request, const AwsKeys& keys, const std::string& region) {
  const std::string authorization = request.header("authorization");
  const std::string names = ";" + between(authorization, "SignedHeaders=", ',') + ";";
  HttpRequest again{
      .method = request.method,
      .url = "http://" + request.header("host") + request.path + (request.query.empty() ? "" : "?") + request.query};
  for (const auto& [name, value] : request.headers) {
    const bool is_own = name == "host" || name == "x-amz-date" || name == "x-amz-security-token";
    if (!is_own && names.find(";" + name + ";") != names.npos) again.headers.emplace_back(name, value);
    if (name.starts_with("x-amz-") && names.find(";" + name + ";") == names.npos) return false;
  }
  sign_aws(again, keys, {region, "s3"}, request.header("x-amz-content-sha256"), time_of(request.header("x-amz-date")));
  return *find_header(again.headers, "Authorization") == authorization;
}

}  // namespace

S3Twin::S3Twin() : keys_(std::make_shared<FixedKeys>()) {
  server_ =
      std::make_unique<StubServer>([this](const StubRequest& request, StubAnswer& answer) { handle(request, answer); });
}
S3Twin::~S3Twin() { server_.reset(); }

std::string S3Twin::id() { return kKeys.id; }
std::string S3Twin::secret() { return kKeys.secret; }
std::string S3Twin::url() const { return server_->url(); }

StoreAccess S3Twin::access() const {
  StoreAccess access;
  access.s3 = [keys = keys_, url = url(), part = part]() -> Result<S3Access> {
    S3Access s3;
    s3.keys = keys;
    s3.endpoint = url;
    s3.part = part;
    return s3;
  };
  access.clock = std::make_shared<FakeClock>();
  return access;
}

std::unique_ptr<ObjectStore> S3Twin::open(const std::string& folder) const {
  return open_s3(folder.empty() ? kBucket : fmt::format("{}/{}", kBucket, folder), access()).value();
}

void S3Twin::inject(S3Fault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(fault);
}
void S3Twin::clear_faults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  log_.clear();
}
std::int64_t S3Twin::requests() const { return static_cast<std::int64_t>(log().size()); }
std::vector<std::string> S3Twin::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}
void S3Twin::expire(const std::string& session) {
  const std::lock_guard lock(mutex_);
  expired_.insert(session);
}
void S3Twin::put(const std::string& key, std::string bytes) {
  const std::lock_guard lock(mutex_);
  std::string etag = etag_of(bytes, "");
  objects_[key] = {std::move(bytes), std::move(etag), {}, true};
}
std::vector<std::string> S3Twin::keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}
std::string S3Twin::bytes_of(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return objects_.at(key).bytes;
}
std::int64_t S3Twin::open_uploads() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(uploads_.size());
}
std::string S3Twin::header_of(const std::string& key, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const std::string* found = find_header(objects_.at(key).headers, name);
  return found == nullptr ? "" : *found;
}

void S3Twin::handle(const StubRequest& request, StubAnswer& answer) {
  using enum S3Fault::Kind;
  Reply reply;
  const S3Fault* due = nullptr;
  const auto is = [&](S3Fault::Kind kind) { return due != nullptr && due->kind == kind; };
  bool is_cut = false;
  {
    const std::lock_guard lock(mutex_);
    log_.push_back(
        fmt::format("{} {}{}{}", request.method, request.path, request.query.empty() ? "" : "?", request.query));
    const auto number = static_cast<std::int64_t>(log_.size());
    for (const S3Fault& fault : faults_)
      if (fault.request == number || (fault.onwards && fault.request < number)) due = &fault;
    if (is(refused)) return;
    if (is(slow_down)) reply = {503, error_body("SlowDown"), {}};
    if (is(throttled)) reply = {429, error_body("TooManyRequests"), {}};
    if (is(conflict)) reply = {409, error_body("ConditionalRequestConflict"), {}};
    if (is(late_error)) reply = {200, error_body("InternalError"), {}};
    if (reply.body.empty()) reply = act(request, is(stale_list));
    if (is(twice)) reply = act(request, false);
    if (is(answer_lost) || (is(truncated) && request.method == "HEAD")) return;  // HEAD has no body to cut
    if (is(failed)) reply = {500, error_body("InternalError"), {}};
    if (is(damaged) && !reply.body.empty()) reply.body[reply.body.size() / 2] ^= 1;
    is_cut = is(truncated);
  }
  if (is_cut) return answer.cut(reply.status, reply.body + " ", reply.headers, reply.body.size() / 2);
  if (request.method != "HEAD") return answer.whole(reply.status, reply.body, reply.headers);
  answer.bodiless(reply.status, reply.body.size(), reply.headers);
}

// What is wrong with any request of this kind.
std::optional<S3Twin::Reply> S3Twin::refuse(const StubRequest& request) const {
  const std::string authorization = request.header("authorization");
  const std::string asked = between(authorization, "Credential=", ',');
  if (authorization.empty()) return Reply{403, error_body("AccessDenied"), {}};
  if (expired_.contains(request.header("x-amz-security-token"))) return Reply{400, error_body("ExpiredToken"), {}};
  if (asked.find("/" + region + "/s3/") == asked.npos) {
    return Reply{400,
                 error_body("AuthorizationHeaderMalformed", fmt::format("<Region>{}</Region>", region)),
                 {{"x-amz-bucket-region", region}}};
  }
  AwsKeys keys = kKeys;
  keys.session = request.header("x-amz-security-token");
  if (!is_signed(request, keys, region)) return Reply{403, error_body("SignatureDoesNotMatch"), {}};
  if (request.header("x-amz-content-sha256") != payload_hash(request.body))
    return Reply{400, error_body("XAmzContentSHA256Mismatch"), {}};
  const std::optional<std::uint32_t> crc = read_crc32c_text(request.header("x-amz-checksum-crc32c"));
  if (request.method == "PUT" && crc && *crc != crc_of(request.body)) return Reply{400, error_body("BadDigest"), {}};
  return std::nullopt;
}

S3Twin::Reply S3Twin::act(const StubRequest& request, bool stale) {
  if (std::optional<Reply> wrong = refuse(request)) return *std::move(wrong);
  const std::string path = decoded(request.path);
  const std::string mine = fmt::format("/{}/", kBucket);
  if (!path.starts_with(mine)) return {404, error_body("NoSuchBucket"), {}};
  const Query query = query_of(request.query);
  if (path.size() == mine.size()) return in_bucket(request, query, stale);
  return in_object(request, path.substr(mine.size()), query);
}

S3Twin::Reply S3Twin::in_bucket(const StubRequest& request, const Query& query, bool stale) {
  if (request.method == "HEAD") return {200, "", {{"x-amz-bucket-region", region}}};
  if (query.contains("uploads")) return list_uploads(query);
  if (query.contains("list-type")) return list(query, stale);
  return {405, error_body("MethodNotAllowed"), {}};
}

S3Twin::Reply S3Twin::in_object(const StubRequest& request, const std::string& key, const Query& query) {
  if (request.method == "GET" || request.method == "HEAD") {
    if (!query.contains("uploadId")) return read(request, key);
    const auto found = uploads_.find(query.at("uploadId"));
    if (found == uploads_.end()) return {404, error_body("NoSuchUpload"), {}};
    std::string body = "<ListPartsResult>";
    for (const auto& [number, bytes] : found->second.parts)
      body += fmt::format("<Part><PartNumber>{}</PartNumber><Size>{}</Size></Part>", number, bytes.size());
    return {200, body + "<IsTruncated>false</IsTruncated></ListPartsResult>", {}};
  }
  if (request.method == "PUT" && query.contains("uploadId")) return put_part(request, key, query);
  if (request.method == "PUT") return write(request, key, request.body, request.headers, "");
  if (request.method == "POST" && query.contains("uploads")) {
    const std::string id = fmt::format("upload-{}+/", ++begun_);
    uploads_[id] = {key, request.headers, {}};
    return {200,
            fmt::format("<InitiateMultipartUploadResult><UploadId>{}</UploadId></InitiateMultipartUploadResult>", id),
            {}};
  }
  if (request.method == "POST" && query.contains("uploadId")) return complete(request, key, query.at("uploadId"));
  if (request.method == "DELETE" && query.contains("uploadId"))
    return uploads_.erase(query.at("uploadId")) == 1 ? Reply{204, "", {}} : Reply{404, error_body("NoSuchUpload"), {}};
  if (request.method != "DELETE") return {405, error_body("MethodNotAllowed"), {}};
  const bool there = objects_.contains(key);
  if (std::optional<Reply> refused = there ? condition(request, key) : std::nullopt) return *std::move(refused);
  objects_.erase(key);
  return {204, "", {}};
}

std::optional<S3Twin::Reply> S3Twin::condition(const StubRequest& request, const std::string& key) const {
  const auto there = objects_.find(key);
  const std::string match = request.header("if-match");
  if (request.header("if-none-match") == "*" && there != objects_.end())
    return Reply{412, error_body("PreconditionFailed"), {}};
  if (match.empty()) return std::nullopt;
  if (there == objects_.end()) return Reply{404, error_body("NoSuchKey"), {}};
  if (there->second.etag != match) return Reply{412, error_body("PreconditionFailed"), {}};
  return std::nullopt;
}

S3Twin::Reply S3Twin::read(const StubRequest& request, const std::string& key) const {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return {404, error_body("NoSuchKey"), {}};
  const Object& object = found->second;
  if (std::optional<Reply> refused = condition(request, key)) return *std::move(refused);
  Reply reply{200, object.bytes, {{"ETag", object.etag}}};
  if (const std::string* mark = find_header(object.headers, "x-amz-meta-systole-write"))
    reply.headers.emplace_back("x-amz-meta-systole-write", *mark);
  const std::string range = request.header("range");
  if (range.empty()) {
    if (object.has_crc && request.header("x-amz-checksum-mode") == "ENABLED")
      reply.headers.emplace_back("x-amz-checksum-crc32c", crc32c_text(crc_of(object.bytes)));
    return reply;
  }
  const auto begin = static_cast<std::size_t>(number_from(between(range, "bytes=", '-')).value_or(0));
  const auto last = static_cast<std::size_t>(number_from(range.substr(range.find('-') + 1)).value_or(0));
  if (begin >= object.bytes.size())
    return {416, error_body("InvalidRange"), {{"Content-Range", fmt::format("bytes */{}", object.bytes.size())}}};
  const std::size_t end = std::min(last + 1, object.bytes.size());
  reply.status = 206;
  reply.body = object.bytes.substr(begin, end - begin);
  reply.headers.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", begin, end - 1, object.bytes.size()));
  return reply;
}

S3Twin::Reply S3Twin::write(const StubRequest& request, const std::string& key, std::string bytes,
                            const HttpHeaders& headers, const std::string& suffix) {
  if (std::optional<Reply> refused = condition(request, key)) return *std::move(refused);
  const std::string etag = etag_of(bytes, suffix);
  Reply reply{200, "", {{"ETag", etag}, {"x-amz-checksum-crc32c", crc32c_text(crc_of(bytes))}}};
  objects_[key] = {std::move(bytes), etag, headers, suffix.empty() || holds_checksums};
  return reply;
}

S3Twin::Reply S3Twin::put_part(const StubRequest& request, const std::string& key, const Query& query) {
  const auto found = uploads_.find(query.at("uploadId"));
  if (found == uploads_.end() || found->second.key != key) return {404, error_body("NoSuchUpload"), {}};
  const int number = number_from<int>(query.at("partNumber")).value();
  const std::string source = decoded(request.header("x-amz-copy-source"));
  if (source.empty()) {
    found->second.parts[number] = request.body;
    return {
        200, "", {{"ETag", etag_of(request.body, "")}, {"x-amz-checksum-crc32c", crc32c_text(crc_of(request.body))}}};
  }
  const auto from = objects_.find(source.substr(std::string_view(kBucket).size() + 2));
  if (from == objects_.end()) return {404, error_body("NoSuchKey"), {}};
  if (from->second.etag != request.header("x-amz-copy-source-if-match"))
    return {412, error_body("PreconditionFailed"), {}};
  const std::string range = request.header("x-amz-copy-source-range");
  const auto begin = static_cast<std::size_t>(number_from(between(range, "bytes=", '-')).value());
  const auto last = static_cast<std::size_t>(number_from(range.substr(range.find('-') + 1)).value());
  const std::string bytes = from->second.bytes.substr(begin, last + 1 - begin);
  found->second.parts[number] = bytes;
  return {200, fmt::format("<CopyPartResult><ETag>{}</ETag></CopyPartResult>", xml_escaped(etag_of(bytes, ""))), {}};
}

S3Twin::Reply S3Twin::complete(const StubRequest& request, const std::string& key, const std::string& id) {
  const auto found = uploads_.find(id);
  if (found == uploads_.end() || found->second.key != key) return {404, error_body("NoSuchUpload"), {}};
  const XmlElement asked = parse_xml(request.body, "what completes an upload").value();
  std::string bytes;
  for (const XmlElement& listed : asked.children) {
    const auto there = found->second.parts.find(number_from<int>(listed.text_of("PartNumber")).value());
    if (there == found->second.parts.end() || etag_of(there->second, "") != listed.text_of("ETag"))
      return {400, error_body("InvalidPart"), {}};
    bytes += there->second;
  }
  const std::optional<std::uint32_t> crc = read_crc32c_text(request.header("x-amz-checksum-crc32c"));
  if (crc && *crc != crc_of(bytes)) return {400, error_body("BadDigest"), {}};
  const std::string suffix = fmt::format("-{}", asked.children.size());
  Reply reply = write(request, key, std::move(bytes), found->second.headers, suffix);
  if (reply.status != 200) return reply;
  uploads_.erase(found);
  reply.body = fmt::format("<CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>",
                           xml_escaped(*find_header(reply.headers, "ETag")));
  return reply;
}

S3Twin::Reply S3Twin::list(const Query& query, bool stale) const {
  const std::string prefix = query.at("prefix");
  const std::string after = query.contains("continuation-token") ? query.at("continuation-token") : "";
  std::string body =
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>";
  std::string last, common;
  std::size_t entries = 0;
  bool more = false;
  for (auto at = objects_.lower_bound(prefix); !stale && at != objects_.end() && at->first.starts_with(prefix); ++at) {
    const std::size_t slash = query.contains("delimiter") ? at->first.find('/', prefix.size()) : std::string::npos;
    const std::string name = slash == std::string::npos ? at->first : at->first.substr(0, slash + 1);
    if (name <= after || name == common) continue;
    if (entries == page) {
      more = true;
      break;
    }
    ++entries;
    last = name;
    if (slash != std::string::npos) {
      common = name;
      body += fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", url_encoded(name, true));
    } else {
      body += fmt::format("<Contents><Key>{}</Key><Size>{}</Size></Contents>", url_encoded(name, true),
                          at->second.bytes.size());
    }
  }
  body += fmt::format("<IsTruncated>{}</IsTruncated>", more);
  if (more) body += fmt::format("<NextContinuationToken>{}</NextContinuationToken>", xml_escaped(last));
  return {200, body + "</ListBucketResult>", {}};
}

S3Twin::Reply S3Twin::list_uploads(const Query& query) const {
  const std::string prefix = query.at("prefix");
  std::string body = "<ListMultipartUploadsResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>";
  for (const auto& [id, upload] : uploads_) {
    if (!upload.key.starts_with(prefix)) continue;
    body += fmt::format("<Upload><Key>{}</Key><UploadId>{}</UploadId></Upload>", url_encoded(upload.key, true), id);
  }
  return {200, body + "</ListMultipartUploadsResult>", {}};
}

}  // namespace systole

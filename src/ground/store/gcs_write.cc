#include "ground/store/gcs_write.h"

#include <random>

#include "ground/base/hash.h"
#include "ground/net/url.h"
#include "ground/store/object_facts.h"
#include "ground/store/object_path.h"

namespace systole {
namespace {

// 64 random bits: of a mark, of a boundary. From the system each time: forked processes must not draw the same.
std::string drawn_name() {
  std::random_device device;
  return to_hex(std::uint64_t{device()} << 32 | device());
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string gcs_condition(const Precondition& when) {
  switch (when.kind) {
    case Precondition::Kind::always: break;
    case Precondition::Kind::absent: return "&ifGenerationMatch=0";
    case Precondition::Kind::generation: return "&ifGenerationMatch=" + url_encoded(when.generation.text);
  }
  return "";
}

Result<Generation> written(GcsApi& api, std::string_view path, const Precondition& when, const HttpSent& sent,
                           const std::string& mark, std::uint32_t sum, Bytes size) {
  const HttpReply& reply = sent.reply;
  const bool refused = reply.status == 412 || (reply.status == 404 && when.kind == Precondition::Kind::generation);
  if (refused) {  // by the first of two tries, perhaps
    const Result<GcsObject> there = api.describe(path);
    if (there.ok() && there->mark == mark && there->size == size) return Generation{there->generation};
    if (!there.ok() && there.error().kind != ErrorKind::not_found) return there.error();
  }
  if (refused && when.kind == Precondition::Kind::absent)
    return error(ErrorKind::exists, "the object '{}' is there already", api.shown(path));
  if (refused) {
    return error(ErrorKind::busy, "the object '{}' is not the one that was read: another writer was faster",
                 api.shown(path));
  }
  if (reply.status / 100 != 2) return api.refusal(reply, path, "write");
  const GcsObject object = TRY(read_gcs_object(reply, api.shown(path)));
  if (object.size == size && (!object.crc32c || *object.crc32c == sum)) return Generation{object.generation};
  (void)api.erase(api.name_of(path), object.generation, true);
  return error(ErrorKind::corrupt,
               "'{}': {} bytes with the CRC32C {:08x} were sent, and {} with {:08x} arrived; removed", api.shown(path),
               size.count(), sum, object.size.count(), object.crc32c.value_or(0));
}

Result<Generation> put_in_gcs(GcsApi& api, std::string_view path, std::span<const std::byte> bytes,
                              const Precondition& when) {
  const std::uint32_t sum = crc32c(bytes);
  const std::string mark = drawn_name(), boundary = "systole-" + drawn_name() + drawn_name();
  const Node about = Node::map({{"name", api.name_of(path)},
                                {"contentType", "application/octet-stream"},
                                {"crc32c", crc32c_text(sum)},
                                {"metadata", Node::map({{"systole-write", mark}})}});
  std::string body = fmt::format(
      "--{0}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{1}\r\n--{0}\r\nContent-Type: "
      "application/octet-stream\r\n\r\n",
      boundary, to_json(about));
  body.reserve(body.size() + bytes.size() + boundary.size() + 8);
  body += text_of(bytes);
  body += fmt::format("\r\n--{}--\r\n", boundary);
  const HttpSent sent =
      TRY(api.send({.method = "POST",
                    .url = api.upload_url("uploadType=multipart" + gcs_condition(when)),
                    .headers = {{"Content-Type", fmt::format("multipart/related; boundary={}", boundary)}},
                    .body = std::move(body)}));
  return written(api, path, when, sent, mark, sum, Bytes(bytes.size()));
}

namespace {

constexpr int kMostCalls = 100'000;  // of one copy, each of which may end after 30 s

class GcsUpload : public Upload {
 public:
  GcsUpload(std::shared_ptr<GcsApi> api, std::shared_ptr<GcsUploads> uploads, std::string path)
      : api_(std::move(api)), uploads_(std::move(uploads)), path_(std::move(path)) {
    const std::lock_guard lock(uploads_->mutex);
    number_ = ++uploads_->count;
    uploads_->begun[number_] = {path_, Bytes()};
  }
  GcsUpload(const GcsUpload&) = delete;
  GcsUpload& operator=(const GcsUpload&) = delete;
  ~GcsUpload() override { (void)abort(); }

  // The last byte stays here until the end: the last part says how long the object is.
  Status append(std::span<const std::byte> bytes) override {
    CHECK(!over_, "append to the upload of '{}' after its end", path_);
    TRY(grow(bytes.size()));
    sum_ = crc32c(bytes, sum_);
    const auto part = static_cast<std::size_t>(api_->part());
    while (held_.size() + bytes.size() > part) {
      if (held_.empty()) {  // sent from where they are
        TRY(send_part(text_of(bytes.first(part))));
        bytes = bytes.subspan(part);
        continue;
      }
      const std::size_t some = part - held_.size();
      held_ += text_of(bytes.first(some));
      bytes = bytes.subspan(some);
      if (bytes.empty()) break;
      TRY(send_part(held_));
      held_.clear();
    }
    held_ += text_of(bytes);
    return {};
  }

  Status complete(const Precondition& when, Durability durability) override {
    return complete_as(path_, when, durability);
  }

  Status complete_as(std::string_view path, const Precondition& when, Durability) override {
    CHECK(!over_, "the upload of '{}' is completed after its end", path_);
    TRY(check_object_path(path));
    TRY(grow(0));
    Result<Generation> done =
        session_.empty() ? put_in_gcs(*api_, path, std::as_bytes(std::span(held_)), when) : copied(path, when);
    const bool again = !done.ok() && (done.error().kind == ErrorKind::exists || done.error().kind == ErrorKind::busy);
    if (again) return std::move(done).error();
    (void)abort();
    if (!done.ok()) return std::move(done).error();
    return {};
  }

  Status abort() override {
    if (over_) return {};
    over_ = true;
    {
      const std::lock_guard lock(uploads_->mutex);
      uploads_->begun.erase(number_);
    }
    if (!stored_.empty()) {
      (void)api_->erase(temporary_, stored_, true);
    } else if (!session_.empty()) {
      (void)api_->send({.method = "DELETE", .url = session_, .is_own_address = true, .once = true});
    }
    return {};
  }

 private:
  Status grow(std::size_t bytes) {
    const std::lock_guard lock(uploads_->mutex);
    const auto open = uploads_->begun.find(number_);
    if (open == uploads_->begun.end())
      return error(ErrorKind::not_found, "the upload of '{}' was aborted", api_->shown(path_));
    open->second.size += Bytes(bytes);
    size_ = open->second.size.count();
    return {};
  }

  Status begin() {
    const std::size_t slash = path_.rfind('/');
    const std::string folder = slash == path_.npos ? "" : path_.substr(0, slash + 1);
    temporary_ = api_->name_of(fmt::format("{}{}{}.tmp", folder, kOwnName, drawn_name()));
    const HttpReply reply =
        std::move(TRY(api_->send({.method = "POST",
                                  .url = api_->upload_url("uploadType=resumable&name=" + url_encoded(temporary_)),
                                  .headers = {{"Content-Type", "application/json"}},
                                  .body = R"({"contentType":"application/octet-stream"})"}))
                      .reply);
    if (reply.status / 100 != 2) return api_->refusal(reply, path_, "write");
    const std::string* place = reply.header("location");
    if (place == nullptr || place->empty())
      return error(ErrorKind::io, "'{}': what answers is not Cloud Storage: it begins no upload", api_->shown(path_))
          .hinted("check the endpoint: STORAGE_EMULATOR_HOST, CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE");
    session_ = *place;
    return {};
  }

  // Bytes that the server has of the session, as "Range: bytes=0-99" says; none: it has nothing.
  static std::int64_t has(const HttpReply& reply) {
    const std::string* range = reply.header("range");
    const std::size_t dash = range == nullptr ? std::string::npos : range->rfind('-');
    return dash == std::string::npos ? 0 : std::atoll(range->c_str() + dash + 1) + 1;
  }

  // Sends a part; with `last` also the length of all, after which the object is there. After a try that was lost, or an
  // answer that has only some of it, the rest follows.
  Result<HttpReply> send_bytes(std::string_view part, bool last) {
    const std::int64_t end = sent_ + static_cast<std::int64_t>(part.size());
    bool first = true;
    std::int64_t from = sent_;
    for (int stalls = 0; stalls < 8;) {
      GcsAsk ask{.method = "PUT", .url = session_, .is_own_address = true};
      // Each try after the first only asks what has arrived: it may have been everything.
      ask.begin = [&](HttpRequest& request) -> Status {
        const std::string total = last ? std::to_string(end) : "*";
        if (!std::exchange(first, false)) {
          request.headers.emplace_back("Content-Range", "bytes */" + total);
          return {};
        }
        request.borrowed_body = part.substr(static_cast<std::size_t>(from - sent_));
        request.headers.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", from, end - 1, total));
        request.headers.emplace_back("Content-Type", "application/octet-stream");
        if (last) request.headers.emplace_back("X-Goog-Hash", "crc32c=" + crc32c_text(sum_));
        request.bulk = true;
        return {};
      };
      HttpReply reply = std::move(TRY(api_->send(ask)).reply);
      if (reply.status != 308) return reply;
      const std::int64_t now = has(reply);
      if (now < from || now > end) return lost(now);
      if (now == end && !last) return reply;
      stalls = now == from ? stalls + 1 : 0;
      from = now;
      first = true;
    }
    return error(ErrorKind::io, "cannot write {}: the server takes no more of it than {} bytes", api_->shown(path_),
                 from);
  }
  Error lost(std::int64_t now) const {
    return error(ErrorKind::io, "cannot write {}: the server has {} bytes of it, and {} were there before",
                 api_->shown(path_), now, sent_);
  }

  Status send_part(std::string_view part) {
    if (session_.empty()) TRY(begin());
    const HttpReply reply = TRY(send_bytes(part, false));
    if (reply.status == 404 || reply.status == 410) return ended();
    if (reply.status != 308) return api_->refusal(reply, path_, "write");
    sent_ += static_cast<std::int64_t>(part.size());
    return {};
  }
  Error ended() const {
    return error(ErrorKind::io, "cannot write {}: its upload was ended by the server", api_->shown(path_));
  }

  // The temporary object, whole and compared.
  Status store() {
    const HttpReply reply = TRY(send_bytes(held_, true));
    if (reply.status == 404 || reply.status == 410) return ended();
    if (reply.status / 100 != 2) return api_->refusal(reply, path_, "write");
    const GcsObject object = TRY(read_gcs_object(reply, api_->shown(path_)));
    stored_ = object.generation;
    held_.clear();
    if (object.size == Bytes(size_) && (!object.crc32c || *object.crc32c == sum_)) return {};
    return error(ErrorKind::corrupt, "'{}': {} bytes with the CRC32C {:08x} were sent, and {} with {:08x} arrived",
                 api_->shown(path_), size_, sum_, object.size.count(), object.crc32c.value_or(0));
  }

  Result<Generation> copied(std::string_view path, const Precondition& when) {
    if (stored_.empty()) TRY(store());
    const std::string mark = drawn_name();
    const Node about =
        Node::map({{"contentType", "application/octet-stream"}, {"metadata", Node::map({{"systole-write", mark}})}});
    std::string token;
    bool may_be_second = false;
    for (int calls = 0; calls < kMostCalls; ++calls) {
      std::string query = fmt::format("ifSourceGenerationMatch={}{}", stored_, gcs_condition(when));
      if (!token.empty()) query += "&rewriteToken=" + url_encoded(token);
      HttpSent sent = TRY(api_->send({.method = "POST",
                                      .url = api_->rewrite_url(temporary_, api_->name_of(path), query),
                                      .headers = {{"Content-Type", "application/json"}},
                                      .body = to_json(about)}));
      sent.may_be_second = may_be_second = may_be_second || sent.may_be_second;
      const Result<Node> said = sent.reply.status == 200 ? parse_json(sent.reply.body, "answer") : Result<Node>(Node());
      if (!said.ok() || sent.reply.status != 200) return written(*api_, path, when, sent, mark, sum_, Bytes(size_));
      if (said->text_at("done") != "false") {
        if (const Node* resource = said->find("resource"); resource != nullptr) sent.reply.body = to_json(*resource);
        return written(*api_, path, when, sent, mark, sum_, Bytes(size_));
      }
      token = said->text_at("rewriteToken");
      if (token.empty()) break;
    }
    return error(ErrorKind::io, "cannot write {}: its copy neither ends nor goes on", api_->shown(path));
  }

  const std::shared_ptr<GcsApi> api_;
  const std::shared_ptr<GcsUploads> uploads_;
  const std::string path_;
  std::int64_t number_ = 0;
  bool over_ = false;
  std::string held_;       // bytes that are not sent
  std::int64_t sent_ = 0;  // bytes that the server has said it has
  std::int64_t size_ = 0;  // of all
  std::uint32_t sum_ = 0;  // CRC32C of all
  std::string session_;    // its address; empty: nothing is sent
  std::string temporary_;  // the name of its object
  std::string stored_;     // its generation; empty: it is not whole
};

}  // namespace

std::unique_ptr<Upload> upload_to_gcs(std::shared_ptr<GcsApi> api, std::shared_ptr<GcsUploads> uploads,
                                      std::string path) {
  return std::make_unique<GcsUpload>(std::move(api), std::move(uploads), std::move(path));
}

}  // namespace systole

#include "ground/store/s3_place.h"

#include <unistd.h>

#include <atomic>
#include <random>

namespace systole {

std::string new_s3_mark() {
  static const std::uint64_t random = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  static std::atomic<std::int64_t> count = 0;
  return fmt::format("{:016x}-{}-{}", random, ::getpid(), ++count);
}

HttpHeaders s3_object_headers(const S3Place& place, const std::string& mark) {
  HttpHeaders headers{{"Content-Type", "application/octet-stream"}, {std::string(kS3Mark), mark}};
  place.api->add_encryption(headers);
  return headers;
}

void add_s3_condition(HttpHeaders& headers, const Precondition& when) {
  if (when.kind == Precondition::Kind::absent) headers.emplace_back("If-None-Match", "*");
  if (when.kind == Precondition::Kind::generation) headers.emplace_back("If-Match", when.generation.text);
}

Result<S3Answer> head_s3(const S3Place& place, std::string_view path) {
  S3Answer answer =
      TRY(place.api->send({.method = "HEAD", .key = place.key(path), .headers = {{"x-amz-checksum-mode", "ENABLED"}}}));
  if (!answer.good()) return place.api->refusal(answer, place.shown(path));
  if (answer.header("etag").empty())
    return error(ErrorKind::io, "{}: the answer has no ETag, as one of S3 has", place.shown(path))
        .hinted("look at AWS_ENDPOINT_URL");
  return answer;
}

Result<Generation> written_s3(const S3Place& place, std::string_view path, const S3Answer& answer,
                              const Precondition& when, const std::string& mark) {
  if (answer.good()) {
    Generation written{answer.header("etag")};
    if (!written.text.empty()) return written;
    return error(ErrorKind::io, "{}: the answer has no ETag, as one of S3 has", place.shown(path))
        .hinted("look at AWS_ENDPOINT_URL");
  }
  const bool refused = answer.status() == 412 || (answer.status() == 404 && answer.code != "NoSuchBucket");
  if (refused) {  // by an earlier try, or a proxy that sends twice?
    const Result<S3Answer> there = head_s3(place, path);
    if (there.ok() && there->header(kS3Mark) == mark) return Generation{there->header("etag")};
    if (!there.ok() && there.error().kind != ErrorKind::not_found) return there.error();
  }
  const bool conditional = when.kind != Precondition::Kind::always;
  if (!refused || !conditional || answer.code == "NoSuchUpload") return place.api->refusal(answer, place.shown(path));
  if (when.kind == Precondition::Kind::absent)
    return error(ErrorKind::exists, "the object '{}' is there already", place.shown(path));
  return error(ErrorKind::busy, "the object '{}' is not the one that was read: another writer was faster",
               place.shown(path));
}

Status check_s3_crc(const S3Answer& answer, std::uint32_t crc, std::string_view what) {
  const std::optional<std::uint32_t> stated = read_crc32c_text(answer.header("x-amz-checksum-crc32c"));
  if (!stated || *stated == crc) return {};
  return error(ErrorKind::io, "{}: S3 has other bytes than were sent: their CRC-32C is {:08x} there and {:08x} here",
               what, *stated, crc);
}

}  // namespace systole

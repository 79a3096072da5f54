#include "ground/store/s3_multipart.h"

#include <algorithm>

#include "ground/base/crc32c.h"
#include "ground/base/hash.h"
#include "ground/base/xml.h"
#include "ground/net/url.h"

namespace systole {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<S3Multipart> S3Multipart::begin(const S3Place& place, std::string path) {
  std::string mark = new_s3_mark();
  S3Call call{.method = "POST", .key = place.key(path), .query = {{"uploads", ""}}};
  call.headers = s3_object_headers(place, mark);
  call.headers.emplace_back("x-amz-checksum-algorithm", "CRC32C");
  call.headers.emplace_back("x-amz-checksum-type", "FULL_OBJECT");
  const S3Answer answer = TRY(place.api->send(call));
  if (!answer.good()) return place.api->refusal(answer, place.shown(path));
  std::string id =
      TRY(parse_xml(answer.reply.body, fmt::format("the answer of {}", place.shown(path)))).text_of("UploadId");
  if (id.empty()) return error(ErrorKind::io, "{}: the answer names no upload", place.shown(path));
  return S3Multipart(place, std::move(path), std::move(id), std::move(mark));
}

S3Call S3Multipart::part_call(int number) const {
  return {
      .method = "PUT", .key = place_.key(path_), .query = {{"partNumber", std::to_string(number)}, {"uploadId", id_}}};
}

Error S3Multipart::refusal(const S3Answer& answer) const {
  if (answer.code == "NoSuchUpload" || (answer.status() == 404 && answer.code != "NoSuchBucket"))
    return error(ErrorKind::not_found, "the upload of '{}' was aborted", place_.shown(path_));
  return place_.api->refusal(answer, place_.shown(path_));
}

void S3Multipart::keep(int number, Part part) {
  const std::lock_guard lock(*mutex_);
  parts_.resize(std::max(parts_.size(), static_cast<std::size_t>(number)));
  parts_[static_cast<std::size_t>(number) - 1] = std::move(part);
}

Status S3Multipart::put(int number, std::span<const std::byte> bytes) {
  const std::uint32_t crc = crc32c(bytes);
  S3Call call = part_call(number);
  call.headers = {{"Content-Type", "application/octet-stream"}, {"x-amz-checksum-crc32c", crc32c_text(crc)}};
  call.body = text_of(bytes);
  const S3Answer answer = TRY(place_.api->send(call));
  if (!answer.good()) return refusal(answer);
  TRY(check_s3_crc(answer, crc, place_.shown(path_)));
  keep(number, {answer.header("etag"), static_cast<std::int64_t>(bytes.size()), crc});
  return {};
}

Status S3Multipart::copy(int number, std::string_view path, const Generation& version, std::int64_t offset,
                         std::int64_t size) {
  S3Call call = part_call(number);
  const std::string source = fmt::format("/{}/{}", place_.api->bucket(), place_.key(path));
  call.headers = {{"x-amz-copy-source", url_encoded(source, true)},
                  {"x-amz-copy-source-if-match", version.text},
                  {"x-amz-copy-source-range", fmt::format("bytes={}-{}", offset, offset + size - 1)}};
  const S3Answer answer = TRY(place_.api->send(call));
  if (!answer.good()) return refusal(answer);
  const XmlElement copied = TRY(parse_xml(answer.reply.body, fmt::format("the answer of {}", place_.shown(path_))));
  keep(number, {copied.text_of("ETag"), size, std::nullopt});
  return {};
}

std::int64_t S3Multipart::size() const {
  std::int64_t size = 0;
  for (const Part& part : parts_) size += part.size;
  return size;
}

std::optional<std::uint32_t> S3Multipart::whole_crc() const {
  std::uint32_t crc = 0;
  for (const Part& part : parts_) {
    if (!part.crc) return std::nullopt;
    crc = crc32c_joined(crc, *part.crc, static_cast<std::uint64_t>(part.size));
  }
  return crc;
}

Result<Generation> S3Multipart::complete(const Precondition& when) {
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, xml_escaped(parts_[i].etag));
  }
  body += "</CompleteMultipartUpload>";
  S3Call call{.method = "POST", .key = place_.key(path_), .query = {{"uploadId", id_}}};
  call.headers = {{"Content-Type", "application/xml"}};
  call.body = body;
  add_s3_condition(call.headers, when);
  if (const std::optional<std::uint32_t> crc = whole_crc()) {
    call.headers.emplace_back("x-amz-checksum-crc32c", crc32c_text(*crc));
    call.headers.emplace_back("x-amz-checksum-type", "FULL_OBJECT");
  }
  const S3Answer answer = TRY(place_.api->send(call));
  if (answer.good()) {
    const XmlElement done = TRY(parse_xml(answer.reply.body, fmt::format("the answer of {}", place_.shown(path_))));
    return Generation{done.text_of("ETag")};
  }
  Result<Generation> written = written_s3(place_, path_, answer, when, mark_);
  if (!written.ok() && written.error().kind == ErrorKind::not_found) return refusal(answer);
  return written;
}

Status S3Multipart::abort(bool once) {
  const S3Answer answer =
      TRY(place_.api->send({.method = "DELETE", .key = place_.key(path_), .query = {{"uploadId", id_}}, .once = once}));
  if (!answer.good() && answer.status() != 404) return place_.api->refusal(answer, place_.shown(path_));
  return {};
}

}  // namespace systole

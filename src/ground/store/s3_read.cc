#include "ground/store/s3_read.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "ground/base/crc32c.h"
#include "ground/base/hash.h"
#include "ground/base/parallel.h"
#include "ground/net/content_range.h"
#include "ground/store/bucket_answers.h"

namespace systole {
namespace {

constexpr Bytes kMostRefusal{64 << 10};  // of the document that says why
constexpr int kVersions = 4;             // of an object that is replaced while it is read

Error too_short(const S3Place& place, std::string_view path, std::int64_t have, std::int64_t end) {
  return error(ErrorKind::corrupt, "'{}' ends at byte {}, {} bytes too early", place.shown(path), have, end - have);
}

Error other_bytes(const S3Place& place, std::string_view path, std::uint32_t stated, std::uint32_t read) {
  return error(ErrorKind::corrupt, "'{}' arrives damaged: its CRC-32C is {:08x} and that of what was read {:08x}",
               place.shown(path), stated, read);
}

Result<Bytes> size_in(const S3Answer& head, const S3Place& place, std::string_view path) {
  if (const std::optional<Bytes> size = size_from(head.header("content-length"))) return *size;
  return error(ErrorKind::io, "{}: the answer tells no size", place.shown(path));
}

// One request. `version`: of this one alone; busy when it is another.
Status read_piece(const S3Place& place, const std::string& path, std::int64_t offset, ReadSink& into,
                  const Generation& version) {
  const std::int64_t end = offset + static_cast<std::int64_t>(into.size());
  S3Call call{
      .key = place.key(path), .headers = {{"Range", fmt::format("bytes={}-{}", offset, end - 1)}}, .into = &into};
  if (!version.text.empty()) call.headers.emplace_back("If-Match", version.text);
  const S3Answer answer = TRY(place.api->send(call));
  const ContentRange range = read_content_range(answer.header("content-range")).value_or(ContentRange());
  if (answer.status() == 416) return too_short(place, path, range.total.value_or(offset), end);
  if (answer.status() == 412) return error(ErrorKind::busy, "'{}' has changed", place.shown(path));
  if (!answer.good()) return place.api->refusal(answer, place.shown(path));
  const bool is_range = answer.status() == 206 && range.begin == offset;
  if (!is_range && !(answer.status() == 200 && offset == 0))
    return error(ErrorKind::io, "{}: the answer is no range from byte {}", place.shown(path), offset);
  if (answer.got == into.size()) return {};
  return too_short(place, path, offset + static_cast<std::int64_t>(answer.got), end);
}

// The same, hedged: the read may outlive this call, so it shares nothing but the API, which waits for it.
Status read_hedged(const S3Place& place, std::string_view path, std::int64_t offset, std::span<std::byte> into,
                   const Generation& version) {
  S3Api* const api = place.api.get();
  return api->reads().read(
      into, [api, prefix = place.prefix, path = std::string(path), offset, version](ReadSink& sink) {
        const S3Place borrowed{std::shared_ptr<S3Api>(std::shared_ptr<void>(), api), prefix};  // owns nothing
        return read_piece(borrowed, path, offset, sink, version);
      });
}

// All pieces of one version, in parallel. Errors: busy (it was replaced meanwhile).
Status read_version(const S3Place& place, std::string_view path, std::int64_t offset, std::span<std::byte> into) {
  const S3Answer head = TRY(head_s3(place, path));
  const std::int64_t size = TRY(size_in(head, place, path)).count();
  const std::int64_t end = offset + static_cast<std::int64_t>(into.size());
  if (size < end) return too_short(place, path, size, end);
  const std::size_t part = place.api->access().part, count = (into.size() + part - 1) / part;
  std::vector<std::uint32_t> crcs(count);
  const std::optional<std::uint32_t> stated = read_crc32c_text(head.header("x-amz-checksum-crc32c"));
  const bool is_checked = stated && size == static_cast<std::int64_t>(into.size());
  TRY(for_each_in_parallel(count, place.api->access().parallel, [&](std::size_t i) -> Status {
    const std::span<std::byte> piece = into.subspan(i * part, std::min(part, into.size() - i * part));
    TRY(read_hedged(place, path, offset + static_cast<std::int64_t>(i * part), piece, {head.header("etag")}));
    if (is_checked) crcs[i] = crc32c(piece);
    return {};
  }));
  if (!is_checked) return {};
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < count; ++i) crc = crc32c_joined(crc, crcs[i], std::min(part, into.size() - i * part));
  return crc == *stated ? Status() : other_bytes(place, path, *stated, crc);
}

}  // namespace

Status read_s3_range(const S3Place& place, std::string_view path, std::int64_t offset, std::span<std::byte> into) {
  if (into.empty()) {
    const Bytes size = TRY(size_in_s3(place, path));
    return size >= Bytes(offset) ? Status() : too_short(place, path, size.count(), offset);
  }
  if (into.size() <= place.api->access().part) return read_hedged(place, path, offset, into, {});
  for (int version = 0; version < kVersions; ++version) {
    Status read = read_version(place, path, offset, into);
    if (read.ok() || read.error().kind != ErrorKind::busy) return read;
  }
  return error(ErrorKind::io, "'{}' is replaced again and again while it is read", place.shown(path));
}

Status read_s3_version(const S3Place& place, std::string_view path, const Generation& version, std::int64_t offset,
                       std::span<std::byte> into) {
  const std::size_t part = place.api->access().part, count = (into.size() + part - 1) / part;
  Status read = for_each_in_parallel(
      count, std::min<int>(place.api->access().parallel, static_cast<int>(count)), [&](std::size_t i) {
        const std::span<std::byte> piece = into.subspan(i * part, std::min(part, into.size() - i * part));
        return read_hedged(place, path, offset + static_cast<std::int64_t>(i * part), piece, version);
      });
  const bool gone = !read.ok() && (read.error().kind == ErrorKind::busy || read.error().kind == ErrorKind::not_found);
  if (!gone) return read;
  return error(ErrorKind::busy, "'{}' was replaced or removed while it was read", place.shown(path));
}

Result<ObjectFacts> facts_in_s3(const S3Place& place, std::string_view path) {
  const S3Answer head = TRY(head_s3(place, path));
  const Bytes size = TRY(size_in(head, place, path));
  ObjectFacts facts{.size = size, .generation = {head.header("etag")}};
  facts.crc32c = read_crc32c_text(head.header("x-amz-checksum-crc32c"));
  std::string tag = facts.generation.text;
  std::erase(tag, '"');
  const bool is_digest = tag.size() == 32 && tag.find_first_not_of("0123456789abcdef") == tag.npos;
  const bool is_of_kms = head.header("x-amz-server-side-encryption").starts_with("aws:kms") ||
                         !head.header("x-amz-server-side-encryption-customer-algorithm").empty();
  if (is_digest && !is_of_kms && !place.api->bucket().ends_with("--x-s3")) facts.md5 = tag;
  return facts;
}

Result<Versioned> read_s3_whole(const S3Place& place, std::string_view path, Bytes limit) {
  S3Answer answer = TRY(place.api->send({.key = place.key(path),
                                         .headers = {{"x-amz-checksum-mode", "ENABLED"}},
                                         .most = std::max(limit, kMostRefusal)}));
  if (!answer.good()) return place.api->refusal(answer, place.shown(path));
  if (const Bytes size(answer.reply.body.size()); size > limit) {
    return error(ErrorKind::does_not_fit, "'{}' has {} bytes and the limit for such an object is {}", place.shown(path),
                 with_commas(size.count()), with_commas(limit.count()));
  }
  Versioned whole{std::move(answer.reply.body), {answer.header("etag")}};
  if (whole.generation.text.empty())
    return error(ErrorKind::io, "{}: the answer has no ETag, as one of S3 has", place.shown(path))
        .hinted("look at AWS_ENDPOINT_URL");
  const std::optional<std::uint32_t> stated = read_crc32c_text(answer.header("x-amz-checksum-crc32c"));
  const std::uint32_t crc = stated ? crc32c(std::as_bytes(std::span(whole.bytes))) : 0;
  if (stated && *stated != crc) return other_bytes(place, path, *stated, crc);
  return whole;
}

Result<Bytes> size_in_s3(const S3Place& place, std::string_view path) {
  const S3Answer head = TRY(head_s3(place, path));
  return size_in(head, place, path);
}

}  // namespace systole

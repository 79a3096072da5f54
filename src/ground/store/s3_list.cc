#include "ground/store/s3_list.h"

#include <algorithm>
#include <charconv>

#include "ground/base/xml.h"
#include "ground/store/bucket_answers.h"
#include "ground/store/object_path.h"
#include "ground/store/path.h"

namespace systole {
namespace {

using Query = std::vector<std::pair<std::string, std::string>>;

// "a b" of "a+b" and of "a%20b".
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

// A page, of a document whose root begins so: some servers say ListPartsResponse for ListPartsResult.
Result<XmlElement> page_of(const S3Place& place, std::string key, Query query, std::string_view root) {
  const S3Answer answer = TRY(place.api->send({.key = std::move(key), .query = std::move(query)}));
  const std::string what = fmt::format("s3://{}/{}", place.api->bucket(), place.prefix);
  if (!answer.good()) {
    Error refused = place.api->refusal(answer, what);
    if (refused.kind == ErrorKind::not_found && answer.code != "NoSuchUpload")
      refused.kind = ErrorKind::io;  // no list is absent
    return refused;
  }
  Result<XmlElement> page = parse_xml(answer.reply.body, fmt::format("the list of {}", what));
  if (page.ok() && page->name.starts_with(root)) return page;
  if (!page.ok()) return error(ErrorKind::io, "{}", page.error().message).hinted("look at AWS_ENDPOINT_URL");
  return error(ErrorKind::io, "the list of {} is none of S3", what).hinted("look at AWS_ENDPOINT_URL");
}

// Its keys may be encoded.
std::string text_in(const XmlElement& page, const XmlElement& element, std::string_view child) {
  const std::string text = element.text_of(child);
  return page.text_of("EncodingType") == "url" ? decoded(text) : text;
}

Status add_page(const S3Place& place, const XmlElement& page, ObjectList& list) {
  for (const XmlElement& element : page.children) {
    if (element.name != "Contents" && element.name != "CommonPrefixes") continue;
    std::string key = text_in(page, element, element.name == "Contents" ? "Key" : "Prefix");
    if (!key.starts_with(place.prefix)) continue;
    key.erase(0, place.prefix.size());
    if (element.name == "CommonPrefixes") {
      if (key.size() > 1 && split_dir_path(key).ok()) list.prefixes.push_back(std::move(key));
    } else {
      const std::optional<Bytes> size = size_from(element.text_of("Size"));
      if (!size)
        return error(ErrorKind::io, "'{}': its list states no size of it", place.shown(key))
            .hinted("look at AWS_ENDPOINT_URL");
      list.objects.push_back({std::move(key), *size});
    }
  }
  return {};
}

// Whether another page follows, which begins at `next`. Errors: io, that is where this one began.
Result<bool> goes_on(const S3Place& place, const XmlElement& page, std::string_view here, std::string_view next,
                     int pages) {
  if (page.text_of("IsTruncated") != "true") return false;
  if (leads_on(here, next, pages)) return true;
  return error(ErrorKind::io, "the list of s3://{}/{} says that more follows, and leads nowhere", place.api->bucket(),
               place.prefix)
      .hinted("look at AWS_ENDPOINT_URL");
}

Result<Bytes> bytes_of_upload(const S3Place& place, const std::string& key, const std::string& id) {
  Bytes bytes;
  std::string marker;
  for (int pages = 1;; ++pages) {
    Query query{{"uploadId", id}};
    if (!marker.empty()) query.insert(query.begin(), {"part-number-marker", marker});
    const Result<XmlElement> page = page_of(place, key, query, "ListParts");
    if (!page.ok() && page.error().kind == ErrorKind::not_found) return bytes;  // it has ended meanwhile
    if (!page.ok()) return page.error();
    for (const XmlElement& part : page->children)
      if (part.name == "Part") bytes += size_from(part.text_of("Size")).value_or(Bytes());
    std::string next = page->text_of("NextPartNumberMarker");
    if (!TRY(goes_on(place, *page, marker, next, pages))) return bytes;
    marker = std::move(next);
  }
}

}  // namespace

Result<ObjectList> list_s3(const S3Place& place, std::string_view prefix, ListDepth depth) {
  ObjectList list;
  std::string token;
  for (int pages = 1;; ++pages) {
    Query query;
    if (!token.empty()) query.emplace_back("continuation-token", token);
    if (depth == ListDepth::one_level) query.emplace_back("delimiter", "/");
    query.emplace_back("encoding-type", "url");
    query.emplace_back("list-type", "2");
    query.emplace_back("prefix", place.key(prefix));
    const XmlElement page = TRY(page_of(place, "", std::move(query), "ListBucketResult"));
    TRY(add_page(place, page, list));
    std::string next = page.text_of("NextContinuationToken");
    if (!TRY(goes_on(place, page, token, next, pages))) break;
    token = std::move(next);
  }
  std::ranges::sort(list.objects, {}, &ObjectEntry::path);
  keep_paths(list);
  std::ranges::sort(list.prefixes);
  list.prefixes.erase(std::unique(list.prefixes.begin(), list.prefixes.end()), list.prefixes.end());
  return list;
}

Result<Bytes> abort_s3_uploads(const S3Place& place, std::string_view prefix) {
  Bytes freed;
  std::string key_marker, id_marker;
  for (int pages = 1;; ++pages) {
    Query query{{"encoding-type", "url"}};
    if (!key_marker.empty()) query.emplace_back("key-marker", key_marker);
    query.emplace_back("prefix", place.key(prefix));
    if (!id_marker.empty()) query.emplace_back("upload-id-marker", id_marker);
    query.emplace_back("uploads", "");
    const XmlElement page = TRY(page_of(place, "", std::move(query), "ListMultipartUploadsResult"));
    for (const XmlElement& upload : page.children) {
      if (upload.name != "Upload") continue;
      const std::string key = text_in(page, upload, "Key"), id = upload.text_of("UploadId");
      if (!key.starts_with(place.key(prefix))) continue;  // some servers list all
      freed += TRY(bytes_of_upload(place, key, id));
      const S3Answer answer = TRY(place.api->send({.method = "DELETE", .key = key, .query = {{"uploadId", id}}}));
      if (!answer.good() && answer.status() != 404)
        return place.api->refusal(answer, fmt::format("s3://{}/{}", place.api->bucket(), key));
    }
    std::string next_key = text_in(page, page, "NextKeyMarker"), next_id = page.text_of("NextUploadIdMarker");
    const std::string here = key_marker + "\n" + id_marker, next = next_key.empty() ? "" : next_key + "\n" + next_id;
    if (!TRY(goes_on(place, page, here, next, pages))) return freed;
    key_marker = std::move(next_key);
    id_marker = std::move(next_id);
  }
}

}  // namespace systole

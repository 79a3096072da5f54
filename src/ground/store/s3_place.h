#pragma once
// Where a store is in its bucket, and what its writes have in common: conditions, and the mark by which a writer
// recognises its own write after a lost answer.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ground/store/object_facts.h"
#include "ground/store/s3_api.h"

namespace systole {

struct S3Place {
  std::shared_ptr<S3Api> api;
  std::string prefix;  // "" or "a/b/"
  std::string key(std::string_view path) const { return prefix + std::string(path); }
  std::string shown(std::string_view path) const { return fmt::format("s3://{}/{}{}", api->bucket(), prefix, path); }
};

// Headers of a new object: encryption, and a mark of this write alone, which HEAD gives back.
inline constexpr std::string_view kS3Mark = "x-amz-meta-systole-write";
std::string new_s3_mark();
HttpHeaders s3_object_headers(const S3Place& place, const std::string& mark);
void add_s3_condition(HttpHeaders& headers, const Precondition& when);

// The object at the path: its size, version and mark, without its bytes. Errors: not_found, io.
Result<S3Answer> head_s3(const S3Place& place, std::string_view path);
// Of a write that was answered: its version; or, if it was refused, the error that its condition makes of it, unless
// the object there has the mark, so that an earlier try (its answer lost, or sent twice by a proxy) was this write. Errors: exists, busy, io.
Result<Generation> written_s3(const S3Place& place, std::string_view path, const S3Answer& answer,
                              const Precondition& when, const std::string& mark);
// The checksum that S3 states of what it received must be `crc`, if it states one. Errors: io.
Status check_s3_crc(const S3Answer& answer, std::uint32_t crc, std::string_view what);

}  // namespace systole

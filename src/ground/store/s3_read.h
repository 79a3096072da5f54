#pragma once
// Reads of objects of S3.

#include <cstdint>
#include <span>
#include <string_view>

#include "ground/store/object_facts.h"
#include "ground/store/s3_place.h"

namespace systole {

// As ObjectStore::get. More than one part is read in parallel, all of one version. What is checked: the length; of a
// whole object of more than one part also its CRC-32C, if S3 has it. S3 states no checksum of a range.
Status read_s3_range(const S3Place& place, std::string_view path, std::int64_t offset, std::span<std::byte> into);
// The same of the version with this ETag alone. Errors: also busy, it is gone.
Status read_s3_version(const S3Place& place, std::string_view path, const Generation& version, std::int64_t offset,
                       std::span<std::byte> into);
// The ETag of an object that was written in one part, and not with a key of KMS or of the client, is its MD5, except in
// directory buckets.
Result<ObjectFacts> facts_in_s3(const S3Place& place, std::string_view path);
// As ObjectStore::get_whole. Its CRC-32C is checked if S3 has it.
Result<Versioned> read_s3_whole(const S3Place& place, std::string_view path, Bytes limit);
Result<Bytes> size_in_s3(const S3Place& place, std::string_view path);

}  // namespace systole

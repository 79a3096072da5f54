#pragma once
// Writes of one object to S3, whole or by parts.

#include <memory>
#include <string>
#include <string_view>

#include "ground/store/s3_place.h"

namespace systole {

// Errors: as ObjectStore::put.
Result<Generation> put_s3(const S3Place& place, std::string_view path, std::span<const std::byte> bytes,
                          const Precondition& when);
// Up to one part it is buffered here and then put; a larger one is a multipart upload of its first path. Under another
// path it is completed at the first one, which must be free, copied by S3 and removed there.
std::unique_ptr<Upload> start_s3_upload(S3Place place, std::string path);

}  // namespace systole

#pragma once
// Lists of S3, page by page: of objects, and of uploads that are not complete.

#include <string>
#include <string_view>

#include "ground/store/s3_place.h"

namespace systole {

// As ObjectStore::list. Keys that are no paths of a store ("a//b", "a/" for a folder) are left out.
Result<ObjectList> list_s3(const S3Place& place, std::string_view prefix, ListDepth depth);
// Aborts the uploads below the prefix; returns the bytes of their parts. Errors: io.
Result<Bytes> abort_s3_uploads(const S3Place& place, std::string_view prefix);

}  // namespace systole

#pragma once
// Pointers that git-lfs leaves in place of large files until they are pulled. A few lines of text:
//
//   version https://git-lfs.github.com/spec/v1
//   oid sha256:4d7a...
//   size 2471645608

#include <string_view>

#include "ground/base/result.h"
#include "ground/store/store.h"

namespace systole {

// Errors: invalid if the file is such a pointer, with the path and what to do; those of reading.
Status refuse_lfs_pointer(Store& store, std::string_view path);

}  // namespace systole

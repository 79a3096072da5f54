#pragma once
// A file that the user named, read or written whole. Files of a run go through a Store (ground/store/store.h).

#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// A regular file, a pipe or a device. Errors, all with the path: not_found; invalid (a folder, or more than `limit`);
// io.
Result<std::string> read_text_file(const std::string& path, Bytes limit = kGiB);
// Before long work whose result goes there: whether it can be written now. Makes nothing. Errors: as write_text_file.
Status check_writable(const std::string& path);
// Over what is there. Errors: as os_error has them; invalid: a folder.
Status write_text_file(const std::string& path, std::string_view text);

}  // namespace systole

#pragma once
// Reads or writes a whole file that the user named. Files of a run go through a Store (ground/store/store.h).

#include <optional>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

inline constexpr Bytes kMostText = kMiB * 256;  // the limit of a document too (document.h)

// Reads a regular file, or a pipe to its end, of at most `limit`; opens nothing else. Errors, all with the path:
// not_found; invalid (a folder, a device or socket, more than `limit`); io.
Result<std::string> read_text_file(const std::string& path, Bytes limit = kMostText);
// Reads an open descriptor to its end, such as standard input; `name` is for messages. Errors: invalid (more than
// `limit`), io.
Result<std::string> read_text_from(int fd, std::string_view name, Bytes limit = kMostText);
// Reads a file or pipe that holds a secret. Only its owner may have read access, or a group if root owns the file, as
// Kubernetes does with a pod's group; with `anybody` others too. Errors: as read_text_file; invalid, others may read
// it.
Result<std::string> read_secret_file(const std::string& path, Bytes limit, bool anybody = false);
// The same permission check alone, for files read in other ways; nothing if only its owner may read it.
std::optional<Error> readable_by_others(const std::string& path);
// Checks whether the file can be written, before long work whose result goes there. Creates nothing. Errors: as
// write_text_file.
Status check_writable(const std::string& path);
// Overwrites an existing file. Errors: as os_error; invalid: a folder.
Status write_text_file(const std::string& path, std::string_view text);

}  // namespace systole

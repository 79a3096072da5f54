#pragma once
// A file that the user named, read or written whole. Files of a run go through a Store (ground/store/store.h).

#include <optional>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

inline constexpr Bytes kMostText = kMiB * 256;  // as much as a document is read of (document.h)

// A regular file, or a pipe to its end: no more than `limit`, and not a byte of what cannot be one. Errors, all with
// the path: not_found; invalid (a folder, a device or socket, more than `limit`); io.
Result<std::string> read_text_file(const std::string& path, Bytes limit = kMostText);
// What comes from a descriptor that is open, as standard input is; `name` is for messages. Errors: invalid (more than
// `limit`), io.
Result<std::string> read_text_from(int fd, std::string_view name, Bytes limit = kMostText);
// A file or pipe that holds a secret. Its owner alone may read it, or a group that root gave it to, as Kubernetes does
// with the group of a pod; with `anybody` others too. Errors: as read_text_file; invalid, others may read it.
Result<std::string> read_secret_file(const std::string& path, Bytes limit, bool anybody = false);
// The error of read_secret_file, of a file that is read otherwise; nothing when only its owner may read it.
std::optional<Error> readable_by_others(const std::string& path);
// Before long work whose result goes there: whether it can be written now. Makes nothing. Errors: as write_text_file.
Status check_writable(const std::string& path);
// Over what is there. Errors: as os_error has them; invalid: a folder.
Status write_text_file(const std::string& path, std::string_view text);

}  // namespace systole

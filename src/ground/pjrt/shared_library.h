#pragma once
// Checks that a file is a complete shared library for this machine. The dynamic linker would map a truncated one, and
// the process would die of SIGBUS; so its headers are checked against the file's length first.

#include <string>

#include "ground/base/result.h"

namespace systole::pjrt {

// Errors: not_found; invalid (not a regular file); corrupt (not an ELF library for this machine, or truncated; the
// message says how much is there).
Status check_shared_library(const std::string& path);

}  // namespace systole::pjrt

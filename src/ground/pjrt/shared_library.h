#pragma once
// Is a file a shared library for this machine, and all of it? The dynamic linker maps one that is cut off and the
// process dies of SIGBUS where the rest should be; so what its headers claim is held against its length first.

#include <string>

#include "ground/base/result.h"

namespace systole::pjrt {

// Errors: not_found; invalid (no file); corrupt (no ELF library of this kind of machine, or cut off: how much is
// there).
Status check_shared_library(const std::string& path);

}  // namespace systole::pjrt

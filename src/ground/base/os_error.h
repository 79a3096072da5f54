#pragma once
// What the operating system refused, as an Error: one table from errno to the kind that a caller acts on.

#include <string>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

// `number` is an errno value, `doing` a verb phrase ("create"), `path` what it was done to (may be empty):
// "cannot create 'runs/1/a.bin': No space left on device". ENOENT and ENOTDIR are not_found, ENOSPC and EDQUOT
// no_space, EEXIST and ENOTEMPTY exists, EWOULDBLOCK busy, everything else io; hints where an edit or a command helps.
Error os_error(int number, std::string_view doing, std::string_view path = {});

}  // namespace systole

#pragma once
// An operating system error as an Error: one table from errno to kind.

#include <string>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

// `number` is an errno value, `doing` a verb phrase ("create"), `path` its object (may be empty): "cannot create
// 'runs/1/a.bin': No space left on device". ENOENT and ENOTDIR are not_found, ENOSPC and EDQUOT no_space, EEXIST and
// ENOTEMPTY exists, EWOULDBLOCK busy, everything else io. There is a hint if an edit or a command helps. For a refused
// permission the hint inspects the file system: it names the path that denies access, or its owner.
Error os_error(int number, std::string_view doing, std::string_view path = {});
// The same for read-only calls ("read", "list"): for a refused permission the hint asks for read, not write, access.
Error os_read_error(int number, std::string_view doing, std::string_view path = {});

}  // namespace systole

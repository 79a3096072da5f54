#pragma once
// A store of this machine whose files only their owner can access (0600), whatever the umask is. For data that may
// contain secrets: a ledger, an audit. Rewriting an existing file that others could read also restricts it.

#include <memory>
#include <string>

#include "ground/store/store.h"

namespace systole {

// Errors: as open_posix_store.
Result<std::unique_ptr<Store>> open_private_store(std::string root);

}  // namespace systole

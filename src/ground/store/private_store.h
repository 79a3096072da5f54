#pragma once
// A store of this machine whose files are for their owner alone (0600), whatever the umask is: what may hold what a
// secret made, a ledger, an audit. One that was there and others could read is closed to them when it is written again.

#include <memory>
#include <string>

#include "ground/store/store.h"

namespace systole {

// Errors: as open_posix_store.
Result<std::unique_ptr<Store>> open_private_store(std::string root);

}  // namespace systole

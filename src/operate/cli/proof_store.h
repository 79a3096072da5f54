#pragma once
// The folder of the user's in which proofs are kept.

#include <memory>
#include <string>

#include "ground/store/store.h"

namespace systole::cli {

// Null, and no folder, where there is no place for it. Errors: io.
Result<std::unique_ptr<Store>> open_proof_store(std::string& folder);

}  // namespace systole::cli

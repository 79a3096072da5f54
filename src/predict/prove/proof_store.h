#pragma once
// The user's folder for cached proofs.

#include <memory>
#include <string>

#include "ground/store/store.h"

namespace systole::prove {

// Sets `folder`. Null and "": there is no place for one. Errors: io.
Result<std::unique_ptr<Store>> open_proof_store(std::string& folder);

}  // namespace systole::prove

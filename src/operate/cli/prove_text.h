#pragma once
// A proof as people read it.

#include <string>
#include <vector>

#include "predict/prove/proof.h"
#include "predict/prove/proof_cache.h"
#include "predict/prove/slice.h"

namespace systole::cli {

// `name`: of the program; `cached`: it was proved before.
std::string proof_text(const prove::Proof& proof, const prove::Slice& slice, const std::string& name, bool cached,
                       int width);

// `systole prove --cache`.
std::string cache_text(const std::vector<prove::ProofCache::Entry>& entries, const std::string& folder, int width);

}  // namespace systole::cli

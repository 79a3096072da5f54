#pragma once
// A proof as text.

#include <string>
#include <vector>

#include "predict/prove/proof.h"
#include "predict/prove/proof_cache.h"
#include "predict/prove/slice.h"

namespace systole::prove {

// `name`: of the program; `cached`: the proof is from the cache.
std::string proof_text(const Proof& proof, const Slice& slice, const std::string& name, bool cached, int width);

// `systole prove --cache`.
std::string cache_text(const std::vector<ProofCache::Entry>& entries, const std::string& folder, int width);

}  // namespace systole::prove

#pragma once
// How much of the held-out text also stands in the training text: runs of N words (13 in Brown et al.,
// arXiv:2005.14165, appendix C) that both have. A word is a run of letters, digits and bytes above 127, in lower case;
// what stands between words does not count. N-grams are compared by 64-bit hashes: of a billion held-out and a billion
// training N-grams, the chance is 5% that two are equal by accident.

#include <cstdint>
#include <span>
#include <vector>

#include "execute/data/dataset.h"

namespace systole {

struct Contamination {
  std::int64_t documents = 0;  // held out, of N words or more
  std::int64_t touched = 0;    // of them, with an N-gram that training has too
  std::int64_t ngrams = 0, found = 0;
};

// For each dataset, its held-out documents beside the training documents of all of them. Memory: 9 bytes for each held-
// out word. REQUIRES: words >= 1; datasets with this tokenizer. Errors: those of TokenShard.
Result<std::vector<Contamination>> find_contamination(Store& store, std::span<const TokensManifest> datasets,
                                                      const Tokenizer& tokenizer, std::int64_t words);

}  // namespace systole

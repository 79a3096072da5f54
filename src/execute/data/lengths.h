#pragma once
// The lengths of a dataset's documents, and how many rows they are packed into (packing.h).

#include <optional>

#include "describe/lengths/length_histogram.h"
#include "execute/data/dataset.h"

namespace systole {

struct DatasetLengths {
  LengthHistogram documents;               // in tokens, eos included; of pairs: inputs
  std::optional<LengthHistogram> targets;  // of pairs, eos included
  std::int64_t packed_rows = 0;            // rows of `longest` that the packed documents fill; 0 for pairs
};

// Reads the index of each shard; of pairs, all tokens. `longest`: tokens of a row; 0: the longest document.
// Errors: those of TokenShard::open and read, and of Tokenizer::load.
Result<DatasetLengths> dataset_lengths(Store& store, const TokensManifest& manifest, bool held_out,
                                       std::int64_t longest);

// The rows of `longest` that texts of these lengths fill in a random order. More than a million pieces are judged by a
// million drawn from them. REQUIRES: longest >= 1.
std::int64_t packed_rows(const LengthHistogram& texts, std::int64_t longest);

}  // namespace systole

#pragma once
// The tokenizer of a run. A copy in the run's folder lets it generate text wherever the folder is, and even if the data
// are gone:
//
//   tokenizer.model   the SentencePiece model
//   tokenizer.json    {"hash": of its bytes, "vocabulary": ..., "dataset": key of the tokens}; written after it

#include <string>

#include "execute/data/dataset.h"
#include "operate/run/run_places.h"

namespace systole {

// What a model uses its tokenizer for.
TokenizerUse tokenizer_use(const ModelSpec& model);

// Writes the tokenizer if it is not there yet. `folder`: the run's name in messages. Errors: invalid if the run began
// with another tokenizer than the dataset's; corrupt; io, no_space.
Status keep_tokenizer(Store& run, const std::string& folder, const Dataset& dataset);

// Errors: invalid if the run is not of text; not_found; corrupt if the bytes do not match the hash.
Result<Tokenizer> kept_tokenizer(const RunPlace& run);

}  // namespace systole

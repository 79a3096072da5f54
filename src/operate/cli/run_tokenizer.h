#pragma once
// The tokenizer of a run, kept in the run's folder so that text can be made from it wherever it lies and whatever
// becomes of the data:
//
//   tokenizer.model   the SentencePiece model
//   tokenizer.json    {"hash": of its bytes, "vocabulary": ..., "dataset": key of the tokens}; written after it

#include <string>

#include "execute/data/dataset.h"
#include "operate/cli/run_places.h"

namespace systole::cli {

// What a model's data are.
TokenizerUse tokenizer_use(const ModelSpec& model);

// Writes it where it is not there yet. `folder`: how the run is called in messages. Errors: invalid when the run was
// begun with another tokenizer than the dataset's; corrupt; io, no_space.
Status keep_tokenizer(Store& run, const std::string& folder, const Dataset& dataset);

// Errors: invalid when the run is not of text; not_found; corrupt when its bytes are not those of its hash.
Result<Tokenizer> kept_tokenizer(const RunPlace& run);

}  // namespace systole::cli

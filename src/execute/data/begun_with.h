#pragma once
// Whether a run that goes on has the data that it was begun with: dataset `then`, by its key. Nothing: the same.

#include <optional>
#include <string>

#include "execute/data/build.h"

namespace systole {

struct OtherData {
  const char* what;       // "text", "tokenizer", ...
  std::string then, now;  // keys of datasets
  std::string files;      // ": it is new in 'a.txt'", as far as the dataset of then is still there to tell; or empty
  // "the text is another than the run was begun with (dataset 1a then, 2b now): it is new in 'a.txt'".
  std::string told(std::string_view begun = "the run was begun with") const;
};

// Before anything is built: other text, other options, another tokenizer. Inputs that only another version of Systole
// takes otherwise are the same here; their tokens tell.
std::optional<OtherData> other_inputs(Store& store, const std::string& then, const DatasetInputs& now);

// Of what was built: other tokens.
std::optional<OtherData> other_tokens(Store& store, const std::string& then, const TokensManifest& now);

}  // namespace systole

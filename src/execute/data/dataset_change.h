#pragma once
// Compares a resumed run's data with the dataset that the run began with, `then` (its key). Nothing: no difference.

#include <optional>
#include <string>

#include "execute/data/build.h"

namespace systole {

struct DatasetChange {
  const char* what;       // "text", "tokenizer", ...
  std::string then, now;  // keys of datasets
  std::string files;      // ": it is new in 'a.txt'", if dataset `then` still exists to compare with; else empty
  // The message: "the text is another than the run was begun with (dataset 1a then, 2b now): it is new in 'a.txt'".
  std::string told(std::string_view begun = "the run was begun with") const;
};

// Before a build: compares text, options and tokenizer. Inputs that differ only by the version of Systole count as
// equal here; other_tokens finds the difference.
std::optional<DatasetChange> other_inputs(Store& store, const std::string& then, const DatasetInputs& now);

// After a build: compares the tokens.
std::optional<DatasetChange> other_tokens(Store& store, const std::string& then, const TokensManifest& now);

}  // namespace systole

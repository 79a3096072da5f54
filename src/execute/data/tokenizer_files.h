#pragma once
// Bundles the files of a Hugging Face tokenizer into one byte string, for datasets, runs and Tokenizer::load:
//
//   {"systole_tokenizer":1,"files":{"tokenizer.json":"<its text>","tokenizer_config.json":"<its text>"}}
//
// Each file's text is kept byte for byte, so an export returns the original files.

#include <map>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/store/store.h"

namespace systole {

using TokenizerFiles = std::map<std::string, std::string>;  // name → text

std::string bundle_tokenizer(const TokenizerFiles& files);
// A plain tokenizer.json counts as a bundle of one file. Errors: corrupt; unsupported (a newer version).
Result<TokenizerFiles> unbundle_tokenizer(std::string_view serialised);

// The bytes for Tokenizer::load of a tokenizer in `store`. `path`: a SentencePiece model, a tokenizer.json, a
// vocab.json with merges.txt beside it, a vocab.txt, or the folder of such files ("" is the root). Further tokenizer files beside a
// tokenizer.json, vocab.json or vocab.txt are included. Errors: not_found, naming what was looked for; corrupt; io.
Result<std::string> read_tokenizer(Store& store, const std::string& path);

}  // namespace systole

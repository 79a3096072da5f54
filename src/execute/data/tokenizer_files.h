#pragma once
// The files of a Hugging Face tokenizer as one string of bytes, which datasets and runs keep and Tokenizer::load takes:
//
//   {"systole_tokenizer":1,"files":{"tokenizer.json":"<its text>","tokenizer_config.json":"<its text>"}}
//
// Each file's text is kept byte for byte, so that an export gives back what came in.

#include <map>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/store/store.h"

namespace systole {

using TokenizerFiles = std::map<std::string, std::string>;  // name → text

std::string bundle_tokenizer(const TokenizerFiles& files);
// A tokenizer.json alone is a bundle of one. Errors: corrupt; unsupported (a newer version).
Result<TokenizerFiles> unbundle_tokenizer(std::string_view serialised);

// The bytes that Tokenizer::load takes, of a tokenizer in `store`: `path` is a SentencePiece model, a tokenizer.json, a
// vocab.json with merges.txt beside it, or the folder of such files ("" is the root). What stands beside a
// tokenizer.json or vocab.json and says more of it is taken along. Errors: not_found, naming what was looked for;
// corrupt; io.
Result<std::string> read_tokenizer(Store& store, const std::string& path);

}  // namespace systole

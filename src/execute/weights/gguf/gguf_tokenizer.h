#pragma once
// The tokenizer in a GGUF file's metadata (tokenizer.ggml.*), as the files that execute/data reads: byte-level BPE
// ("gpt2") as tokenizer.json and tokenizer_config.json, SentencePiece's BPE ("llama") as its model.
//
// The metadata name the pattern that splits a text into words; patterns are those of the models' own tokenizer.json
// (compared with llama.cpp, src/llama-vocab.cpp). A normalizer, which the metadata do not tell of, is left out, as
// llama.cpp leaves it out.

#include <string>

#include "execute/data/tokenizer.h"
#include "execute/weights/gguf/gguf_file.h"
#include "ground/base/result.h"

namespace systole {

struct GgufTokenizer {
  TokenizerFamily family = TokenizerFamily::byte_level_bpe;
  std::string model;             // the bytes for Tokenizer::load
  bool begins_with_bos = false;  // bos stands before every text
};

// Errors: corrupt, naming the key of the metadata; unsupported: a tokenizer, or a pattern, by its name.
Result<GgufTokenizer> tokenizer_of_gguf(const GgufFile& file);

// Its family alone, in less time. Errors: the same.
Result<TokenizerFamily> tokenizer_family_of_gguf(const GgufFile& file);

// For prompts. Errors: those of Tokenizer::load_foreign.
Result<Tokenizer> load_for_prompts(GgufTokenizer tokenizer);

}  // namespace systole

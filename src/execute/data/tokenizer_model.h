#pragma once
// What a family of tokenizers supplies. Private to this folder.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/tokenizer.h"
#include "ground/base/hash.h"
#include "ground/base/result.h"

namespace systole {

// One thread's way from text to tokens.
class ModelEncoder {
 public:
  virtual ~ModelEncoder() = default;
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) = 0;
};

// Immutable once loaded; any number of threads.
class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;
  // Borrows the model.
  virtual std::unique_ptr<ModelEncoder> encoder() const = 0;
  virtual Bytes resident() const = 0;

  TokenizerFamily family = TokenizerFamily::sentencepiece;
  std::string serialised;
  Hash128 hash;
  std::int32_t bos = 0, eos = 0;
  std::vector<std::int32_t> before, after;  // that the model it comes with has around every text
  bool keeps_text = true;
  bool begins_with_space = false;
  std::vector<std::string> spellings;         // by token; empty for the special ones
  std::array<std::int32_t, 256> byte_tokens;  // by byte
};

// What a piece of SentencePiece spells: "▁of" is " of".
std::string spelled_piece(const std::string& piece);
constexpr Bytes kSentencePieceToken = Bytes(256);  // that its processor and our spellings hold of a token, measured

// These take what Tokenizer::load takes, the last what load_foreign takes; so do their errors.
Result<std::shared_ptr<TokenizerModel>> load_sentencepiece(std::string_view serialised);
Result<std::shared_ptr<TokenizerModel>> load_byte_level_bpe(std::string_view serialised);
Result<std::shared_ptr<TokenizerModel>> load_foreign_sentencepiece(std::string_view serialised);

}  // namespace systole

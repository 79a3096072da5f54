#pragma once
// The interface of a tokenizer family. Private to this folder.

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

// Encodes text on one thread.
class ModelEncoder {
 public:
  virtual ~ModelEncoder() = default;
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) = 0;
};

// Immutable once loaded; thread-safe.
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
  std::vector<std::int32_t> before, after;  // tokens that the model's files put around every text
  bool keeps_text = true;
  bool begins_with_space = false;
  std::vector<std::string> spellings;         // by token; empty for the special ones
  std::array<std::int32_t, 256> byte_tokens;  // by byte
  std::vector<SpecialToken> specials;         // as Tokenizer::specials
};

// What a SentencePiece piece spells: "▁of" is " of".
std::string spelled_piece(const std::string& piece);
constexpr Bytes kSentencePieceToken = Bytes(256);  // memory per token of its processor and our spellings, measured

// The arguments and errors are those of Tokenizer::load; for the last one, of load_foreign.
Result<std::shared_ptr<TokenizerModel>> load_sentencepiece(std::string_view serialised);
enum class EveryByte { needed, may_lack };  // a byte that has no token is left out of what is encoded
Result<std::shared_ptr<TokenizerModel>> load_byte_level_bpe(std::string_view serialised, EveryByte every_byte);
Result<std::shared_ptr<TokenizerModel>> load_foreign_sentencepiece(std::string_view serialised);

}  // namespace systole

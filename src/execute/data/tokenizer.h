#pragma once
// Tokenizers with one guarantee: decode(encode(x)) == x for every byte string.
//
// A `sentencepiece` model (sentencepiece.cc) is trained here or imported; a `byte_level_bpe` one (byte_level_bpe.h) is
// imported with other people's models: tokenizer.json, or vocab.json with merges.txt. `load` recognizes either by its
// bytes, which datasets and runs keep.
//
// The guarantee excludes `load_foreign`, which is for prompts and pairs of models that were trained without it, and for
// texts that a bert reads: its `word_piece` tokenizer (word_piece.h) is loaded only so.
//
// A special token (bos, eos, unk and others) spells nothing, and no text is encoded to it: "<s>" is encoded as text.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/hash.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

class TokenizerModel;  // tokenizer_model.h
class ModelEncoder;

enum class TokenizerFamily { sentencepiece, byte_level_bpe, word_piece };
const char* name_of(TokenizerFamily family);

// The type of SentencePiece model to train.
enum class TokenizerKind { bpe, unigram };
const char* name_of(TokenizerKind kind);

// The use of a tokenizer. Pairs, as for T5, are never decoded to the exact text, so a SentencePiece model that does not
// keep every byte is allowed.
enum class TokenizerUse { documents, pairs };

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::bpe;
  int vocabulary = 2048;                // total size, bytes and special tokens included
  Bytes sample{std::int64_t{4} << 20};  // bytes of text, drawn from the training documents
  int threads = 2;                      // for training; unigram models depend on it in the last bits
};

// A token that spells nothing in a text, by the name that its files give it: "<|im_end|>".
struct SpecialToken {
  std::string name;
  std::int32_t token = 0;
};

// Immutable, cheap to copy, thread-safe.
class Tokenizer {
 public:
  // Errors: invalid if the vocabulary is too small for the 259 fixed tokens and the characters, or too large for the
  // text; names a size that works.
  static Result<Tokenizer> train(const TokenizerOptions& options, std::span<const std::string> documents);
  // `model`: a serialised SentencePiece model, a tokenizer.json, or several such files bundled (tokenizer_files.h).
  // Errors: corrupt if it is none of them; unsupported, naming the part, if it is of an unknown kind, does not keep
  // every byte of a text, lacks byte tokens, or has no eos. For pairs, a SentencePiece model that does not keep the
  // bytes is loaded as by `load_foreign`.
  static Result<Tokenizer> load(std::string model, TokenizerUse use = TokenizerUse::documents);
  // Any SentencePiece model with an eos, such as T5's: it may alter a text (foreign_sentencepiece.cc). If it has no
  // bos, its pad is used. Or a byte-level BPE without tokens for bytes that are rare, such as SmolLM2's: it omits them. Or a
  // WordPiece tokenizer, with [CLS] as bos and [SEP] as eos.
  // `begins_with_bos`: before() is bos. Errors: corrupt; unsupported, as `load`, but for what may be lacking.
  static Result<Tokenizer> load_foreign(std::string model, bool begins_with_bos = false);

  TokenizerFamily family() const;
  const std::string& model() const;  // the bytes for `load`
  const Hash128& hash() const;       // of model()
  int vocabulary() const;
  Bytes resident() const;    // memory, approximately
  std::int32_t bos() const;  // starts every piece of a document; never predicted, unless it equals eos
  std::int32_t eos() const;  // ends a document
  // The tokens that the model's files put before and after every text: usually bos, and none. (Models trained here use
  // bos and eos, whatever the files say.)
  std::span<const std::int32_t> before() const;
  std::span<const std::int32_t> after() const;
  // Those with a name, no two of them with the same.
  std::span<const SpecialToken> specials() const;
  bool keeps_text() const;  // the guarantee above
  // Whether a text's first token spells a space that is not in the text: only with load_foreign. `decode` omits that
  // space.
  bool begins_with_space() const;
  // The bytes that a token spells, a space as ' '; empty for special ones. REQUIRES: 0 <= token < vocabulary().
  std::string_view bytes_of(std::int32_t token) const;
  // Errors: invalid if a token is outside the vocabulary.
  Result<std::string> decode(std::span<const std::int32_t> tokens) const;

 private:
  friend class Encoder;
  explicit Tokenizer(std::shared_ptr<const TokenizerModel> model) : model_(std::move(model)) {}
  std::shared_ptr<const TokenizerModel> model_;
};

// Encodes, with a cache of 4 MiB for words. One thread; the result does not depend on earlier calls.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  ~Encoder();
  Encoder(Encoder&&) noexcept;

  // Appends the tokens of `text`, without bos or eos.
  void encode(std::string_view text, std::vector<std::int32_t>& tokens);

 private:
  std::shared_ptr<const TokenizerModel> model_;
  std::unique_ptr<ModelEncoder> encoder_;
};

}  // namespace systole

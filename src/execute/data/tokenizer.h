#pragma once
// Tokenizers of two families under one promise: decode(encode(x)) == x for every string of bytes.
//
// `sentencepiece` (sentencepiece.cc) is trained here or brought along; `byte_level_bpe` (byte_level_bpe.h) is brought
// along by other people's models: tokenizer.json, or vocab.json with merges.txt. Either is known by the bytes that
// `load` takes, which is what datasets and runs keep.
//
// The promise does not hold of `load_foreign`, which reads prompts and pairs for models that were trained without it.
//
// A special token (bos, eos, unk and others) spells nothing and no text becomes it: "<s>" in a text is encoded as text.

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

enum class TokenizerFamily { sentencepiece, byte_level_bpe };
const char* name_of(TokenizerFamily family);

// How a SentencePiece model is trained.
enum class TokenizerKind { bpe, unigram };
const char* name_of(TokenizerKind kind);

// What is made with a tokenizer. Of pairs, as a t5 learns them, no text is given back, so a SentencePiece model that
// does not keep every byte will do.
enum class TokenizerUse { documents, pairs };

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::bpe;
  int vocabulary = 2048;                // tokens in all, bytes and special ones included
  Bytes sample{std::int64_t{4} << 20};  // of text, drawn from the training documents
  int threads = 2;                      // of the training; unigram models depend on it in the last bits
};

// Immutable and cheap to copy; any number of threads.
class Tokenizer {
 public:
  // Errors: invalid when the vocabulary is too small for the 259 fixed tokens and the characters, or too large for the
  // text, with the size that would do.
  static Result<Tokenizer> train(const TokenizerOptions& options, std::span<const std::string> documents);
  // A serialised SentencePiece model, a tokenizer.json, or several such files bundled (tokenizer_files.h).
  // Errors: corrupt when it is none of them; unsupported, naming the part, when it is of an unknown kind, would not
  // keep every byte of a text, lacks byte tokens, or has no eos.
  // For pairs a SentencePiece model that would not keep the bytes is taken as `load_foreign` does.
  static Result<Tokenizer> load(std::string model, TokenizerUse use = TokenizerUse::documents);
  // Any SentencePiece model with an eos, as T5's: it may alter a text (foreign_sentencepiece.cc). Its bos is its pad
  // where it has none. Errors: corrupt; unsupported without eos.
  static Result<Tokenizer> load_foreign(std::string model);

  TokenizerFamily family() const;
  const std::string& model() const;  // the bytes that `load` takes
  const Hash128& hash() const;       // of them
  int vocabulary() const;
  Bytes resident() const;    // that it holds, about
  std::int32_t bos() const;  // starts every piece of a document; never predicted, unless it is eos too
  std::int32_t eos() const;  // ends a document
  // What the model that it comes with was trained to see before and after every text, as its files say: most often bos,
  // and nothing. (What is trained here has bos and eos, whatever they say.)
  std::span<const std::int32_t> before() const;
  std::span<const std::int32_t> after() const;
  bool keeps_text() const;  // the promise above
  // Whether a text's first token spells a space that is not of the text: only with load_foreign. `decode` leaves spaces
  // there out.
  bool begins_with_space() const;
  // What a token spells, a space as ' '; empty for the special ones. REQUIRES: 0 <= token < vocabulary().
  std::string_view bytes_of(std::int32_t token) const;
  // Errors: invalid when a token is outside the vocabulary.
  Result<std::string> decode(std::span<const std::int32_t> tokens) const;

 private:
  friend class Encoder;
  explicit Tokenizer(std::shared_ptr<const TokenizerModel> model) : model_(std::move(model)) {}
  std::shared_ptr<const TokenizerModel> model_;
};

// Encodes, with a memory of 4 MiB for words seen. One thread's; the result does not depend on what came before.
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

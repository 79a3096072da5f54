#pragma once
// A SentencePiece tokenizer under one promise: decode(encode(x)) == x for every string of bytes.
//
// SentencePiece alone does not keep it: it puts U+FFFD for ill-formed UTF-8, reads U+2581 as a space, and normalises.
// So the model is trained with the identity normalisation, no dummy prefix, all white space kept and a token for each
// byte, and a text is encoded chunk by chunk. A chunk ends before a space, before and after a byte SentencePiece
// cannot take (ill-formed UTF-8, NUL, U+2581) or a newline, and after 128 bytes. Those bytes become byte tokens; every
// other chunk goes to SentencePiece, and should its tokens not spell the chunk, it becomes byte tokens too. Pieces
// never reach over a space, so the cut costs nothing and lets an Encoder remember the chunks it has seen.
//
// Tokens: 0 unk (never produced), 1 bos (starts every piece of a document; never predicted), 2 eos (ends a document),
// 3..258 the bytes, then pieces. unk, bos and eos spell nothing: text such as "<s>" is encoded as text.

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

enum class TokenizerKind { bpe, unigram };
const char* name_of(TokenizerKind kind);

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
  // A serialised SentencePiece model. Errors: corrupt when it is none; unsupported when it normalises, lacks byte
  // tokens, or has no bos or eos.
  static Result<Tokenizer> load(std::string model);

  const std::string& model() const;  // the bytes that `load` takes
  const Hash128& hash() const;       // of them
  int vocabulary() const;
  std::int32_t bos() const;
  std::int32_t eos() const;
  // What a token spells, a space as ' '; empty for the special ones. REQUIRES: 0 <= token < vocabulary().
  std::string_view bytes_of(std::int32_t token) const;
  // Errors: invalid when a token is outside the vocabulary.
  Result<std::string> decode(std::span<const std::int32_t> tokens) const;

 private:
  friend class Encoder;
  struct Model;
  explicit Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> model_;
};

// Encodes, with a memory of 4 MiB for chunks seen. One thread's; the result does not depend on what came before.
class Encoder {
 public:
  explicit Encoder(Tokenizer tokenizer);
  ~Encoder();
  Encoder(Encoder&&) noexcept;

  // Appends the tokens of `text`, without bos or eos.
  void encode(std::string_view text, std::vector<std::int32_t>& tokens);

 private:
  struct Slot;
  void encode_chunk(std::string_view chunk, std::vector<std::int32_t>& tokens);
  void encode_new(std::string_view chunk);  // into fresh_
  void encode_bytes(std::string_view bytes, std::vector<std::int32_t>& tokens) const;

  Tokenizer tokenizer_;
  std::vector<Slot> slots_;
  std::vector<int> fresh_;
};

}  // namespace systole

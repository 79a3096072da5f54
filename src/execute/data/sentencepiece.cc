// SentencePiece with the guarantee of tokenizer.h.
//
// SentencePiece alone does not keep every byte: it replaces ill-formed UTF-8 by U+FFFD, reads U+2581 as a space, and
// normalises. So the model is trained with identity normalisation, no dummy prefix, all white space kept and a token
// for each byte, and a text is encoded chunk by chunk. A chunk ends before a space, before and after a newline or a
// byte that SentencePiece cannot take (ill-formed UTF-8, NUL, U+2581), and after 128 bytes. Those bytes become byte
// tokens; every other chunk goes to SentencePiece, and if its tokens do not spell the chunk, it becomes byte tokens
// too. Pieces never cross a space, so splitting there costs nothing and lets an encoder cache chunks.
//
// Tokens of a model trained here: 0 unk (never produced), 1 bos, 2 eos, 3..258 the bytes, then pieces.

#include <sentencepiece_processor.h>

#include "execute/data/chunks.h"
#include "execute/data/sentencepiece_library.h"
#include "execute/data/tokenizer_model.h"
#include "execute/data/word_cache.h"

namespace systole {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class SentencePieceModel : public TokenizerModel {
 public:
  std::unique_ptr<ModelEncoder> encoder() const override;
  Bytes resident() const override { return kSentencePieceToken * static_cast<std::int64_t>(spellings.size()); }
  sentencepiece::SentencePieceProcessor processor;
};

class ChunkEncoder : public ModelEncoder {
 public:
  explicit ChunkEncoder(const SentencePieceModel& model) : model_(model) {}

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) override {
    for (TextChunk chunk = first_chunk(text); chunk.length > 0; chunk = first_chunk(text)) {
      const std::string_view bytes = text.substr(0, chunk.length);
      if (!chunk.plain) {
        encode_bytes(bytes, tokens);
      } else if (!known_.find(bytes, tokens)) {
        encode_new(bytes);
        tokens.insert(tokens.end(), fresh_.begin(), fresh_.end());
        known_.keep(bytes, fresh_);
      }
      text.remove_prefix(chunk.length);
    }
  }

 private:
  // Encodes into fresh_.
  void encode_new(std::string_view chunk) {
    fresh_.clear();
    const auto status = model_.processor.Encode(chunk, &fresh_);
    std::string_view left = chunk;
    bool spells = status.ok();
    for (const int token : fresh_) {
      const std::string& bytes = model_.spellings[static_cast<std::size_t>(token)];
      spells = spells && !bytes.empty() && left.starts_with(bytes);
      if (!spells) break;
      left.remove_prefix(bytes.size());
    }
    if (spells && left.empty()) return;
    fresh_.clear();
    encode_bytes(chunk, fresh_);
  }

  void encode_bytes(std::string_view bytes, std::vector<std::int32_t>& tokens) const {
    for (const char byte : bytes) {
      tokens.push_back(model_.byte_tokens[static_cast<std::size_t>(static_cast<unsigned char>(byte))]);
    }
  }

  const SentencePieceModel& model_;
  WordCache known_;
  std::vector<int> fresh_;
};

std::unique_ptr<ModelEncoder> SentencePieceModel::encoder() const { return std::make_unique<ChunkEncoder>(*this); }

Error unfit(std::string_view why) {
  return error(ErrorKind::unsupported, "this SentencePiece model cannot keep every byte of a text: {}", why)
      .hinted(
          "train one with `systole data build`, or with spm_train --byte_fallback "
          "--normalization_rule_name=identity --add_dummy_prefix=false --remove_extra_whitespaces=false");
}

Status find_bytes(SentencePieceModel& model) {
  for (int byte = 0; byte < 256; ++byte) {
    const int token = model.processor.PieceToId(fmt::format("<0x{:02X}>", byte));
    if (!model.processor.IsByte(token)) return unfit(fmt::format("it has no token for byte 0x{:02X}", byte));
    model.byte_tokens[static_cast<std::size_t>(byte)] = token;
  }
  return {};
}

void find_spellings(SentencePieceModel& model) {
  const sentencepiece::SentencePieceProcessor& processor = model.processor;
  const int tokens = processor.GetPieceSize();
  model.spellings.resize(static_cast<std::size_t>(tokens));
  for (int token = 0; token < tokens; ++token) {
    if (processor.IsControl(token)) model.specials.push_back({processor.IdToPiece(token), token});
    if (processor.IsControl(token) || processor.IsUnknown(token) || processor.IsByte(token)) continue;
    model.spellings[static_cast<std::size_t>(token)] = spelled_piece(processor.IdToPiece(token));
  }
  for (int byte = 0; byte < 256; ++byte) {
    model.spellings[static_cast<std::size_t>(model.byte_tokens[static_cast<std::size_t>(byte)])] =
        static_cast<char>(byte);
  }
}

// With any model the encoder would keep the guarantee, but by byte tokens: refusing is better.
bool keeps_text(const SentencePieceModel& model) {
  for (const std::string_view probe : {"a", "two  words", "\xEF\xAC\x81", "A\xCC\x8A"}) {
    std::vector<int> tokens;
    if (!model.processor.Encode(probe, &tokens).ok()) return false;
    std::string text;
    for (const int token : tokens) text += model.spellings[static_cast<std::size_t>(token)];
    if (spelled_piece(text) != probe) return false;  // trained without spaces: it falls back to the bytes of the mark
  }
  return true;
}

}  // namespace

std::string spelled_piece(const std::string& piece) {
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const bool space = std::string_view(piece).substr(at).starts_with(kSpaceMark);
    text += space ? ' ' : piece[at];
    at += space ? kSpaceMark.size() : 1;
  }
  return text;
}

Result<std::shared_ptr<TokenizerModel>> load_sentencepiece(std::string_view serialised) {
  TRY(load_sentencepiece_library());
  auto model = std::make_shared<SentencePieceModel>();
  if (!model->processor.LoadFromSerializedProto(serialised).ok()) {
    return error(ErrorKind::corrupt, "this is neither a SentencePiece model nor a tokenizer.json")
        .hinted("build the data again: `systole data build`");
  }
  model->family = TokenizerFamily::sentencepiece;
  model->bos = model->processor.bos_id();
  model->eos = model->processor.eos_id();
  if (model->bos < 0 || model->eos < 0) return unfit("it has no <s> or no </s>");
  model->before = {model->bos};
  TRY(find_bytes(*model));
  find_spellings(*model);
  if (!keeps_text(*model)) return unfit("it normalises the text or adds and removes spaces");
  return std::shared_ptr<TokenizerModel>(std::move(model));
}

}  // namespace systole

#include "execute/data/tokenizer.h"

#include "execute/data/tokenizer_model.h"
#include "execute/data/word_piece.h"

namespace systole {

const char* name_of(TokenizerFamily family) {
  switch (family) {
    case TokenizerFamily::sentencepiece: return "sentencepiece";
    case TokenizerFamily::byte_level_bpe: return "byte_level_bpe";
    case TokenizerFamily::word_piece: return "word_piece";
  }
  return "";
}

const char* name_of(TokenizerKind kind) { return kind == TokenizerKind::bpe ? "bpe" : "unigram"; }

namespace {

// A SentencePiece model is a protobuf message and cannot begin with a brace: that would be field 15, a group.
bool is_json(std::string_view serialised) {
  const std::size_t first = serialised.find_first_not_of(" \t\r\n");
  return first != std::string::npos && serialised[first] == '{';
}

}  // namespace

Result<Tokenizer> Tokenizer::load(std::string serialised, TokenizerUse use) {
  const bool json = is_json(serialised);
  auto loaded = json ? load_byte_level_bpe(serialised, EveryByte::needed) : load_sentencepiece(serialised);
  if (!loaded.ok() && loaded.error().kind == ErrorKind::unsupported && !json && use == TokenizerUse::pairs)
    return load_foreign(std::move(serialised));
  std::shared_ptr<TokenizerModel> model = TRY(std::move(loaded));
  model->hash = hash128(serialised);
  model->serialised = std::move(serialised);
  return Tokenizer(std::move(model));
}

Result<Tokenizer> Tokenizer::load_foreign(std::string serialised, bool begins_with_bos) {
  std::shared_ptr<TokenizerModel> model =
      TRY(!is_json(serialised)        ? load_foreign_sentencepiece(serialised)
          : is_word_piece(serialised) ? load_word_piece(serialised)
                                      : load_byte_level_bpe(serialised, EveryByte::may_lack));
  if (begins_with_bos) model->before = {model->bos};
  model->hash = hash128(serialised);
  model->serialised = std::move(serialised);
  return Tokenizer(std::move(model));
}

TokenizerFamily Tokenizer::family() const { return model_->family; }
const std::string& Tokenizer::model() const { return model_->serialised; }
const Hash128& Tokenizer::hash() const { return model_->hash; }
int Tokenizer::vocabulary() const { return static_cast<int>(model_->spellings.size()); }
Bytes Tokenizer::resident() const { return model_->resident(); }
std::int32_t Tokenizer::bos() const { return model_->bos; }
std::int32_t Tokenizer::eos() const { return model_->eos; }
std::span<const std::int32_t> Tokenizer::before() const { return model_->before; }
std::span<const std::int32_t> Tokenizer::after() const { return model_->after; }
std::span<const SpecialToken> Tokenizer::specials() const { return model_->specials; }
bool Tokenizer::keeps_text() const { return model_->keeps_text; }
bool Tokenizer::begins_with_space() const { return model_->begins_with_space; }

std::string_view Tokenizer::bytes_of(std::int32_t token) const {
  CHECK(token >= 0 && token < vocabulary(), "token {} of {}", token, vocabulary());
  return model_->spellings[static_cast<std::size_t>(token)];
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= vocabulary()) {
      return error(ErrorKind::invalid, "token {} is outside the vocabulary of {}", token, vocabulary());
    }
    text += bytes_of(token);
  }
  if (begins_with_space()) text.erase(0, text.find_first_not_of(' '));
  return text;
}

Encoder::Encoder(const Tokenizer& tokenizer) : model_(tokenizer.model_), encoder_(model_->encoder()) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;

void Encoder::encode(std::string_view text, std::vector<std::int32_t>& tokens) { encoder_->encode(text, tokens); }

}  // namespace systole

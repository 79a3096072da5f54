#include "execute/data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <array>
#include <cstring>

#include "execute/data/chunks.h"

namespace systole {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

std::string spelled(const std::string& piece) {
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const bool space = std::string_view(piece).substr(at).starts_with(kSpaceMark);
    text += space ? ' ' : piece[at];
    at += space ? kSpaceMark.size() : 1;
  }
  return text;
}

}  // namespace

const char* name_of(TokenizerKind kind) { return kind == TokenizerKind::bpe ? "bpe" : "unigram"; }

struct Tokenizer::Model {
  std::string serialised;
  Hash128 hash;
  sentencepiece::SentencePieceProcessor processor;
  std::vector<std::string> spellings;         // by token
  std::array<std::int32_t, 256> byte_tokens;  // by byte
};

Result<Tokenizer> Tokenizer::load(std::string serialised) {
  auto model = std::make_shared<Model>();
  model->serialised = std::move(serialised);
  model->hash = hash128(model->serialised);
  sentencepiece::SentencePieceProcessor& processor = model->processor;
  const auto status = processor.LoadFromSerializedProto(model->serialised);
  if (!status.ok()) {
    return error(ErrorKind::corrupt, "this is not a SentencePiece model")
        .hinted("build the data again: `systole data build`");
  }
  const auto unfit = [](std::string_view why) {
    return error(ErrorKind::unsupported, "this SentencePiece model cannot keep every byte of a text: {}", why)
        .hinted(
            "train one with `systole data build`, or with spm_train --byte_fallback "
            "--normalization_rule_name=identity --add_dummy_prefix=false --remove_extra_whitespaces=false");
  };
  if (processor.bos_id() < 0 || processor.eos_id() < 0) return unfit("it has no <s> or no </s>");
  for (int byte = 0; byte < 256; ++byte) {
    const int token = processor.PieceToId(fmt::format("<0x{:02X}>", byte));
    if (!processor.IsByte(token)) return unfit(fmt::format("it has no token for byte 0x{:02X}", byte));
    model->byte_tokens[static_cast<std::size_t>(byte)] = token;
  }
  const int tokens = processor.GetPieceSize();
  model->spellings.resize(static_cast<std::size_t>(tokens));
  for (int token = 0; token < tokens; ++token) {
    if (processor.IsControl(token) || processor.IsUnknown(token) || processor.IsByte(token)) continue;
    model->spellings[static_cast<std::size_t>(token)] = spelled(processor.IdToPiece(token));
  }
  for (int byte = 0; byte < 256; ++byte) {
    model->spellings[static_cast<std::size_t>(model->byte_tokens[static_cast<std::size_t>(byte)])] =
        static_cast<char>(byte);
  }
  Tokenizer tokenizer(std::move(model));
  // The guard in Encoder would keep the promise with any model, but byte by byte: better to refuse.
  for (const std::string_view probe : {"a", "two  words", "\xEF\xAC\x81", "A\xCC\x8A"}) {
    std::vector<int> ids;
    if (!tokenizer.model_->processor.Encode(probe, &ids).ok() || *tokenizer.decode(ids) != probe) {
      return unfit("it normalises the text or adds and removes spaces");
    }
  }
  return tokenizer;
}

const std::string& Tokenizer::model() const { return model_->serialised; }
const Hash128& Tokenizer::hash() const { return model_->hash; }
int Tokenizer::vocabulary() const { return static_cast<int>(model_->spellings.size()); }
std::int32_t Tokenizer::bos() const { return model_->processor.bos_id(); }
std::int32_t Tokenizer::eos() const { return model_->processor.eos_id(); }

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
  return text;
}

// A chunk of at most 24 bytes and 8 tokens, so that a slot is one cache line; a longer one is encoded each time.
struct alignas(64) Encoder::Slot {
  std::array<std::uint64_t, 3> key{};  // the chunk's bytes, then zeros
  std::array<std::int32_t, 8> tokens{};
  std::uint8_t length = 0, count = 0;
};

namespace {

constexpr std::size_t kSlots = std::size_t{1} << 16;

std::size_t slot_of(const std::array<std::uint64_t, 3>& key, std::size_t length) {
  const std::uint64_t mixed =
      (key[0] ^ (key[1] * 0x9E3779B97F4A7C15u) ^ (key[2] * 0xC2B2AE3D27D4EB4Fu) ^ length) * 0xD6E8FEB86659FD93u;
  return static_cast<std::size_t>((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u >> 48);
}

}  // namespace

Encoder::Encoder(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)), slots_(kSlots) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;

void Encoder::encode(std::string_view text, std::vector<std::int32_t>& tokens) {
  for (Chunk chunk = first_chunk(text); chunk.length > 0; chunk = first_chunk(text)) {
    const std::string_view bytes = text.substr(0, chunk.length);
    if (chunk.plain) {
      encode_chunk(bytes, tokens);
    } else {
      encode_bytes(bytes, tokens);
    }
    text.remove_prefix(chunk.length);
  }
}

void Encoder::encode_chunk(std::string_view chunk, std::vector<std::int32_t>& tokens) {
  std::array<std::uint64_t, 3> key{};
  if (chunk.size() > sizeof(key)) {
    encode_new(chunk);
    tokens.insert(tokens.end(), fresh_.begin(), fresh_.end());
    return;
  }
  std::memcpy(key.data(), chunk.data(), chunk.size());
  Slot& slot = slots_[slot_of(key, chunk.size())];
  if (slot.length == chunk.size() && slot.key == key) {
    tokens.insert(tokens.end(), slot.tokens.begin(), slot.tokens.begin() + slot.count);
    return;
  }
  encode_new(chunk);
  tokens.insert(tokens.end(), fresh_.begin(), fresh_.end());
  if (fresh_.size() > slot.tokens.size()) return;
  slot.key = key;
  slot.length = static_cast<std::uint8_t>(chunk.size());
  slot.count = static_cast<std::uint8_t>(fresh_.size());
  std::copy(fresh_.begin(), fresh_.end(), slot.tokens.begin());
}

void Encoder::encode_new(std::string_view chunk) {
  fresh_.clear();
  const auto status = tokenizer_.model_->processor.Encode(chunk, &fresh_);
  std::string_view left = chunk;
  bool spells = status.ok();
  for (const int token : fresh_) {
    const std::string_view bytes = tokenizer_.bytes_of(token);
    spells = spells && !bytes.empty() && left.starts_with(bytes);
    if (!spells) break;
    left.remove_prefix(bytes.size());
  }
  if (spells && left.empty()) return;
  fresh_.clear();
  encode_bytes(chunk, fresh_);
}

void Encoder::encode_bytes(std::string_view bytes, std::vector<std::int32_t>& tokens) const {
  for (const char byte : bytes) {
    tokens.push_back(tokenizer_.model_->byte_tokens[static_cast<std::size_t>(static_cast<unsigned char>(byte))]);
  }
}

}  // namespace systole

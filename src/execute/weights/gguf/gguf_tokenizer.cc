#include "execute/weights/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "execute/data/tokenizer_files.h"
#include "ground/base/document.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

constexpr const char* kModel = "tokenizer.ggml.model";
constexpr const char* kPattern = "tokenizer.ggml.pre";
constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kBos = "tokenizer.ggml.bos_token_id";
constexpr const char* kEos = "tokenizer.ggml.eos_token_id";
constexpr const char* kUnknown = "tokenizer.ggml.unknown_token_id";
constexpr const char* kAddBos = "tokenizer.ggml.add_bos_token";
constexpr const char* kAddEos = "tokenizer.ggml.add_eos_token";

// SentencePiece's ModelProto.SentencePiece.Type, which GGUF took over.
constexpr int kNormal = 1, kUserDefined = 4, kByte = 6;  // 2: unknown, 3: control, 5: unused

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Pattern {
  const char* name;        // tokenizer.ggml.pre
  const char* split;       // splits before the next; null: none
  bool then_gpt2 = false;  // GPT-2's pattern splits what is left
  bool ignore_merges = false, adds_bos = false;
};
constexpr std::array kPatterns = {Pattern{"gpt-2", nullptr, true},
                                  Pattern{"smollm", R"(\p{N})", true},
                                  Pattern{"starcoder", R"(\p{N})", true},
                                  Pattern{"refact", R"(\p{N})", true},
                                  Pattern{"command-r", R"(\p{N})", true},
                                  Pattern{"llama-bpe", kLlama3, false, true, true},
                                  Pattern{"llama3", kLlama3, false, true, true},
                                  Pattern{"llama-v3", kLlama3, false, true, true},
                                  Pattern{"qwen2", kQwen2},
                                  Pattern{"deepseek-r1-qwen", kQwen2},
                                  Pattern{"stablelm2", kQwen2}};

// What both kinds have.
struct Vocabulary {
  const std::vector<std::string>* tokens = nullptr;
  std::vector<int> types;  // one of each token
};

Result<Vocabulary> read_vocabulary(const GgufFile& file) {
  Vocabulary read;
  read.tokens = TRY(file.texts(kTokens));
  for (const std::string& token : *read.tokens) {
    if (token.empty() || find_invalid_utf8(token)) {
      return error(ErrorKind::corrupt, "{}: token {} is {}", kTokens, &token - read.tokens->data(),
                   token.empty() ? "empty" : "not UTF-8");
    }
  }
  read.types.assign(read.tokens->size(), kNormal);
  if (!file.has(kTypes)) return read;
  const std::vector<double>& types = *TRY(file.numbers(kTypes));
  if (types.size() != read.types.size()) {
    return error(ErrorKind::corrupt, "{} has {} numbers, and there are {} tokens", kTypes, types.size(),
                 read.types.size());
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!(types[i] >= kNormal && types[i] <= kByte))
      return error(ErrorKind::corrupt, "{}: token {} is of type {}", kTypes, i, types[i]);
    read.types[i] = static_cast<int>(types[i]);
  }
  return read;
}

// The token whose number is the value of `key`; null if the key is absent.
Result<const std::string*> named(const GgufFile& file, const char* key, const Vocabulary& vocabulary) {
  if (!file.has(key)) return nullptr;
  const std::int64_t id = TRY(file.integer(key, 0));
  if (id < static_cast<std::int64_t>(vocabulary.tokens->size()))
    return &(*vocabulary.tokens)[static_cast<std::size_t>(id)];
  return error(ErrorKind::corrupt, "{} is {}, and there are {} tokens", key, id, vocabulary.tokens->size());
}

Result<const Pattern*> find_pattern(const GgufFile& file) {
  if (!file.has(kPattern)) {
    return error(ErrorKind::unsupported, "the file does not say how its tokenizer splits a text ({})", kPattern)
        .hinted("convert the model again with a current llama.cpp");
  }
  const std::string name = TRY(file.text(kPattern));
  std::string known;
  for (const Pattern& pattern : kPatterns) {
    if (pattern.name == name) return &pattern;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", pattern.name);
  }
  return error(ErrorKind::unsupported, "the tokenizer splits a text by '{}' ({}), which is not known here", name,
               kPattern)
      .hinted("known are: " + known);
}

std::string json_of(const std::string& text) { return to_json(Node(text)); }

std::string pre_tokenizer_of(const Pattern& pattern) {
  std::string split;
  if (pattern.split != nullptr) {
    split = fmt::format(R"({{"type":"Split","pattern":{{"Regex":{}}},"behavior":"Isolated","invert":false}},)",
                        json_of(pattern.split));
  }
  return fmt::format(
      R"({{"type":"Sequence","pretokenizers":[{}{{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
      R"("use_regex":{}}}]}})",
      split, pattern.then_gpt2);
}

// A tokenizer.json. Tokens that no merge makes are added ones; unused ones spell nothing, as special ones do.
std::string tokenizer_json(const Vocabulary& vocabulary, const std::vector<std::string>& merges,
                           const Pattern& pattern) {
  std::string added, tokens, merged;
  for (std::size_t i = 0; i < vocabulary.types.size(); ++i) {
    const std::string text = json_of((*vocabulary.tokens)[i]);
    const int type = vocabulary.types[i];
    if (type == kNormal || type == kByte) {
      tokens += fmt::format("{}{}:{}", tokens.empty() ? "" : ",", text, i);
    } else {
      added += fmt::format(
          R"({}{{"id":{},"content":{},"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
          R"("special":{}}})",
          added.empty() ? "" : ",", i, text, type != kUserDefined);
    }
  }
  for (const std::string& merge : merges) merged += fmt::format("{}{}", merged.empty() ? "" : ",", json_of(merge));
  return fmt::format(
      R"({{"version":"1.0","added_tokens":[{}],"normalizer":null,"pre_tokenizer":{},"post_processor":null,)"
      R"("decoder":{{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}},)"
      R"("model":{{"type":"BPE","ignore_merges":{},"vocab":{{{}}},"merges":[{}]}}}})",
      added, pre_tokenizer_of(pattern), pattern.ignore_merges, tokens, merged);
}

Result<GgufTokenizer> byte_level(const GgufFile& file, bool checked_only) {
  const Pattern& pattern = *TRY(find_pattern(file));
  const Vocabulary vocabulary = TRY(read_vocabulary(file));
  const std::vector<std::string>& merges = *TRY(file.texts(kMerges));
  for (const std::string& merge : merges) {
    if (find_invalid_utf8(merge))
      return error(ErrorKind::corrupt, "{}: merge {} is not UTF-8", kMerges, &merge - merges.data());
  }
  const std::string *bos = TRY(named(file, kBos, vocabulary)), *eos = TRY(named(file, kEos, vocabulary));
  const bool adds_bos = TRY(file.flag(kAddBos, pattern.adds_bos)) && bos != nullptr;
  const bool adds_eos = TRY(file.flag(kAddEos, false));
  if (checked_only) return GgufTokenizer{TokenizerFamily::byte_level_bpe, "", adds_bos};
  Node config = Node::map({{"add_bos_token", adds_bos}, {"add_eos_token", adds_eos}});
  if (bos != nullptr) config.set("bos_token", *bos);
  if (eos != nullptr) config.set("eos_token", *eos);
  return GgufTokenizer{TokenizerFamily::byte_level_bpe,
                       bundle_tokenizer({{"tokenizer.json", tokenizer_json(vocabulary, merges, pattern)},
                                         {"tokenizer_config.json", to_json(config, 2) + "\n"}}),
                       adds_bos};
}

// Writes a message of protocol buffers (protobuf.dev/programming-guides/encoding).
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& real(std::uint32_t field, float value) {
    varint(field << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// A SentencePiece model; fields by their numbers in sentencepiece_model.proto (github.com/google/sentencepiece, 0.2).
Result<GgufTokenizer> sentencepiece(const GgufFile& file) {
  const Vocabulary vocabulary = TRY(read_vocabulary(file));
  const std::vector<double>& scores = *TRY(file.numbers(kScores));
  const std::size_t size = vocabulary.tokens->size();
  if (scores.size() != size)
    return error(ErrorKind::corrupt, "{} has {} numbers, and there are {} tokens", kScores, scores.size(), size);
  Message model;
  for (std::size_t i = 0; i < size; ++i) {
    const Message piece = Message()
                              .text(1, (*vocabulary.tokens)[i])
                              .real(2, static_cast<float>(scores[i]))
                              .number(3, static_cast<std::uint64_t>(vocabulary.types[i]));
    model.text(1, piece.bytes());
  }
  Message trainer;
  const bool bytes = std::ranges::count(vocabulary.types, kByte) > 0;
  trainer.number(3, 2).number(4, size).number(35, bytes ? 1 : 0);  // model_type BPE, vocab_size, byte_fallback
  for (const auto& [key, field] : {std::pair(kUnknown, 45U), std::pair(kBos, 46U), std::pair(kEos, 47U)}) {
    if (const std::string* piece = TRY(named(file, key, vocabulary))) trainer.text(field, *piece);
  }
  const bool space = TRY(file.flag("tokenizer.ggml.add_space_prefix", true));
  const bool fewer = TRY(file.flag("tokenizer.ggml.remove_extra_whitespaces", false));
  const bool adds_bos = TRY(file.flag(kAddBos, true));
  const Message normalizer = Message()
                                 .text(1, "identity")
                                 .number(3, space ? 1 : 0)  // add_dummy_prefix
                                 .number(4, fewer ? 1 : 0)  // remove_extra_whitespaces
                                 .number(5, 1);             // escape_whitespaces
  model.text(2, trainer.bytes()).text(3, normalizer.bytes());
  return GgufTokenizer{TokenizerFamily::sentencepiece, model.bytes(), adds_bos};
}

}  // namespace

namespace {

Result<GgufTokenizer> read_tokenizer(const GgufFile& file, bool checked_only) {
  const std::string model = TRY(file.text(kModel));
  if (model == "gpt2") return byte_level(file, checked_only);
  if (model == "llama") return sentencepiece(file);
  return error(ErrorKind::unsupported, "the file's tokenizer is '{}' ({}), which is not read", model, kModel)
      .hinted("gpt2 (byte-level BPE) and llama (SentencePiece's BPE) are");
}

}  // namespace

Result<GgufTokenizer> tokenizer_of_gguf(const GgufFile& file) { return read_tokenizer(file, false); }

Result<TokenizerFamily> tokenizer_family_of_gguf(const GgufFile& file) {
  return TRY(read_tokenizer(file, true)).family;
}

Result<Tokenizer> load_for_prompts(GgufTokenizer tokenizer) {
  return Tokenizer::load_foreign(std::move(tokenizer.model), tokenizer.begins_with_bos);
}

}  // namespace systole
